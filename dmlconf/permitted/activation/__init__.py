"""What activations may be off, alone and fused into other operators."""
