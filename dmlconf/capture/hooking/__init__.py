"""Hooks in the captured application's process, and what they record there."""
