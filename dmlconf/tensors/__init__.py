"""Data types, sizes and strides, and the generators of tensor data."""
