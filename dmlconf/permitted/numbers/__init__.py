"""Errors of FLOAT32 and FLOAT16 arithmetic, which several families of operators need."""
