"""Recordings: what a backend made of a suite, kept to compare with later and elsewhere."""
