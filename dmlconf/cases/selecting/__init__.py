"""Choosing cases."""
