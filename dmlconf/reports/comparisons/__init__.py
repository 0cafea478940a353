"""Reports on runs side by side: what changed, whose result stands alone, and scoreboards."""
