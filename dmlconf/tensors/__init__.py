"""Data types and their limits, sizes and strides, scalars, samples, and generators of data."""
