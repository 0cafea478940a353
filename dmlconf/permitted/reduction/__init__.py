"""Permitted errors of reductions, and of cumulative sums and products."""
