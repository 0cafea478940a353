"""Products of matrices, and attention."""
