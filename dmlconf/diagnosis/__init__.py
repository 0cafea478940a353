"""Explain failures: the conditions that failures of a run share, and what makes one case fail."""
