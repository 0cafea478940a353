"""What cases expect: recorded, filled into case files, and checked against the reference."""
