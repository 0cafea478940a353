"""Permitted results of operators that move elements besides the reference's outputs."""
