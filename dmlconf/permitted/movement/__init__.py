"""Permitted results, besides the reference's outputs, of operators that move elements."""
