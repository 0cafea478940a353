"""Realistic driver defects, and what share of them a suite catches."""
