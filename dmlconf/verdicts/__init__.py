"""Verdicts on cases, their statuses and figures, and how they are written as JSON."""
