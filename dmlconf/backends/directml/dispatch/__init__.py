"""Operators and graphs: compiled, bound and dispatched, and inspected for faults."""
