"""Reports on a run, from its log."""
