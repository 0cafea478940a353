"""Permitted errors of operators on sliding windows."""
