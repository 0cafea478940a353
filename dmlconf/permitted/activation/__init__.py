"""Permitted errors of activations and softmax, alone and fused, and RELU's gradient."""
