"""Reads and checks case files, and plans their cases."""
