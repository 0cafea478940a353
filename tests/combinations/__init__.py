"""Make cases for pairs of values that no case has: `python -m tests.combinations gemm reduce`."""
