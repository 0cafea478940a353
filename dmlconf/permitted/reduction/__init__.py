"""Permitted errors of reductions."""
