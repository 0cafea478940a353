"""What operators on sliding windows may be off."""
