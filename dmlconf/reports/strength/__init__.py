"""Reports on which defects and other changes a suite notices."""
