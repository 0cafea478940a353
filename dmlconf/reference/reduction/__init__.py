"""Operators that reduce or accumulate along axes."""
