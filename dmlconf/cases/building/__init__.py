"""Builds cases from the entries of case files."""
