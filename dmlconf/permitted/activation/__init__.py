"""Permitted errors of activations, as operators of their own and fused into other operators."""
