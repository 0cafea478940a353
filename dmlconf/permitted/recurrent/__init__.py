"""Permitted errors of recurrent layers."""
