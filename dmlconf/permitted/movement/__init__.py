"""What operators that move elements may return besides the reference's outputs."""
