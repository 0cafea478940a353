"""Permitted results of operators on regions of interest besides the reference's outputs."""
