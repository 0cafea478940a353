"""Runs over time: a database of run logs, and questions to it."""
