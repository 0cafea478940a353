"""Data types, sizes and strides, scalars, samples, and the generators of tensor data."""
