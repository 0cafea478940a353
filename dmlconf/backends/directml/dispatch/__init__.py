"""Operators and graphs, compiled, bound and dispatched."""
