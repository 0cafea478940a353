"""Histories: databases of runs, their upkeep, and questions such as since when a case fails."""
