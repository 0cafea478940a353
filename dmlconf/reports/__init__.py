"""Reports: pure functions of a run log."""
