"""Formulas of what DirectML computes instead of the right outputs of a graph."""
