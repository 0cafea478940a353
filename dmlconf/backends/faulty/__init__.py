"""Backends that have one fault, or support one feature level only, for tests of runners."""
