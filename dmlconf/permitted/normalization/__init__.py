"""What normalizations may be off."""
