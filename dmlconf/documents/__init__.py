"""Read files of strangers within limits, check them, and point at the line of each problem."""
