"""Measure the parts of the documentation that a suite covers, and those that it does not."""
