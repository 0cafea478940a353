"""Histories: databases of runs, and questions such as since when a case fails."""
