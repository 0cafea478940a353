"""Formulas of results of other runtimes that differ from DirectML's documentation."""
