"""Operators that normalize by the statistics of a tensor."""
