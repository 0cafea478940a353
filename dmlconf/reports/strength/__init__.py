"""Reports on what a suite notices."""
