"""Permitted errors of activations, softmax and HARDMAX, alone or fused, and of RELU's gradient."""
