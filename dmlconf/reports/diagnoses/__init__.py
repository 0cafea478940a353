"""Reports on the diagnosis of a failing case."""
