"""Permitted results of resampling and its gradient besides the reference's outputs."""
