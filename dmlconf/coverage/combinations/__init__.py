"""Measure which pairs of an operator's parameter values a suite has, such as FLOAT16 and padded."""
