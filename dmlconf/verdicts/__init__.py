"""Verdicts on cases: their statuses, their figures, and their form in JSON."""
