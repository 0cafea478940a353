"""Reads files of strangers within limits, checks them, and points at the line of each problem."""
