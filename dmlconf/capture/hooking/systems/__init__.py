"""What differs between systems when functions of a loaded DirectML are replaced."""
