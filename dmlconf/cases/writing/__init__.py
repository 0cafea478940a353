"""Writes cases into case files."""
