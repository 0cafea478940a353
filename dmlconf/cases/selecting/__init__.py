"""Chooses cases: those that users ask for, or a few that cover many."""
