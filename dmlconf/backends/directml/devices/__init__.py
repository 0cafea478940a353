"""Adapters and devices, their memory, fences and messages."""
