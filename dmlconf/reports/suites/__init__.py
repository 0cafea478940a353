"""Reports on what a suite covers."""
