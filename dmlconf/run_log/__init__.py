"""Run logs: writing, reading, checking and merging them."""
