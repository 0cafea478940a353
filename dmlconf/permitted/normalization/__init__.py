"""Permitted errors of normalizations."""
