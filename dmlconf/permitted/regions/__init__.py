"""What operators on regions of interest may return besides the reference's outputs."""
