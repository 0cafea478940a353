"""Expectations of cases: recorded, filled into case files, and checked against the reference."""
