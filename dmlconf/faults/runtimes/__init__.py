"""Formulas of wrong or deviating results of runtimes other than DirectML."""
