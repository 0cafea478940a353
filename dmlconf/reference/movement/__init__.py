"""Operators that move, select and generate elements."""
