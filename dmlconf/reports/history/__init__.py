"""Answers of a history: as data, as text, and as pages."""
