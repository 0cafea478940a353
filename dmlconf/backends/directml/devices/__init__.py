"""Adapters and devices, their memory, barriers, fences and messages, and a survey of them."""
