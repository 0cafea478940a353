"""Permitted results of operators on single elements besides the reference's outputs."""
