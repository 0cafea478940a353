"""Operators that quantize or dequantize numbers, or compute with quantized ones."""
