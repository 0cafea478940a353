"""Permitted errors of operators on sliding windows: convolution, pooling and FOLD."""
