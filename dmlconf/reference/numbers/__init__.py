"""Arithmetic that several families of operators need."""
