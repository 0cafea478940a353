"""Pairs of values of an operator's parameters that a suite covers, such as FLOAT16 and padded."""
