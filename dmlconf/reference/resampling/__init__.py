"""Operators that resample a tensor along its axes."""
