"""Read files of strangers within limits, check them, and point at the line of each problem.

`store` and `archive` keep what was computed from files; `repeats` saves space in what they keep.
"""
