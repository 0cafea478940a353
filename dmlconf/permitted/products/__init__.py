"""Permitted errors of matrix products and attention."""
