"""Backends that are wrong on purpose, each in one way, for tests of runners and plugins."""
