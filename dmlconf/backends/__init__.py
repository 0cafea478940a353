"""Backends, which run cases: their protocol, names, options and errors, and the built-in ones."""
