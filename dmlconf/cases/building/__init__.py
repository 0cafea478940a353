"""Makes cases of the entries of case files."""
