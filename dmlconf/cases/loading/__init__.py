"""Reads case files, checks them unless that was done before, and plans their cases."""
