"""What operators on quantized tensors may return besides the reference's outputs."""
