"""Verdicts and their statuses."""
