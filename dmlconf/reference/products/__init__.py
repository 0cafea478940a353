"""Products of floating-point matrices, and attention; `quantization` has products of integers."""
