"""Operators on windows that slide over a tensor."""
