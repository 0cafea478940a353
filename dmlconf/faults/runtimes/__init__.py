"""Formulas of wrong results of other runtimes than DirectML."""
