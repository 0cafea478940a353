"""Test cases: their files, their expansion, and their selection."""
