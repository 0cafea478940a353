"""Read files of strangers within limits, check them, and point at the line of each problem.

`store` and `archive` keep computed results; `repeats` writes equal parts of a result once.
"""
