"""Operators on quantized tensors."""
