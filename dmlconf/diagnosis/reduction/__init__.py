"""Reduce a failing case to the smallest one found that still fails in the same way."""
