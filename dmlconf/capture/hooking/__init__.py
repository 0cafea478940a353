"""What runs in the application's process: entries that are replaced, and what is seen there."""
