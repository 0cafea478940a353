"""Measure which pairs of values of an operator's parameters a suite has: FLOAT16 and padded."""
