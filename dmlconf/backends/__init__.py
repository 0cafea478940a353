"""Backends, which run cases: the protocol, the registry, and the built-in backends."""
