"""Permitted errors of activations, alone and fused into other operators."""
