"""Benchmarks of dmlconf beside its peers."""
