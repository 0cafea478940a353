"""From cases to case files."""
