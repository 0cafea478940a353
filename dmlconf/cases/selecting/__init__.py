"""Chooses cases: by what users ask for, or few that cover many."""
