"""Test cases, and the case files that they are read from and written to."""
