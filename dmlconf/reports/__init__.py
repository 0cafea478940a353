"""Reports: pure functions of a run log, or of what else they are about."""
