"""Make cases with pairs of parameters' values that no case has yet.

For example, `python -m tests.combinations gemm reduce` makes cases of two operators.
"""
