"""Reduce a failing case to the smallest one that still fails in the same way."""
