"""Errors of FLOAT32 and FLOAT16 arithmetic, which several families of operators need.

`error_scale`, `terms` and `passes` have the errors of sums, `rounding` and `span` intervals of
results, `accuracy` the errors of the hardware's functions, and `half` how FLOAT16 is stored.
"""
