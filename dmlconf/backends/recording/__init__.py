"""Recordings: a backend's outcomes on a suite, kept to compare with later and elsewhere."""
