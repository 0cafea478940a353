"""Benchmarks of dmlconf against its peers."""
