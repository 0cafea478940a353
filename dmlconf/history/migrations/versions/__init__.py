"""The migrations of a history's tables, one module for each change."""
