"""What resampling and its gradient may return besides the reference's outputs."""
