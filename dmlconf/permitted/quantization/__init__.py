"""Permitted results of operators on quantized tensors besides the reference's outputs."""
