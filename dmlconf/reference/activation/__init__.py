"""Activations, alone and fused into other operators."""
