"""Permitted results, besides the reference's outputs, of operators on regions of interest."""
