"""Permitted results, besides the reference's outputs, of operators on single elements."""
