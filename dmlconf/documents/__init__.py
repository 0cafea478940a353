"""Read files of strangers within limits, check them, and point at the line of each problem.

`store`, `archive` and `repeats` keep what was computed from files.
"""
