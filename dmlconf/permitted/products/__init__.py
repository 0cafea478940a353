"""What products of matrices, and attention, may be off."""
