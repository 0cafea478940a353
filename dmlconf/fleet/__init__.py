"""Runs that are resumed, split, merged, and spread over many machines."""
