"""Operators on regions of interest."""
