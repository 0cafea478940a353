"""What operators on single elements may return besides the reference's outputs."""
