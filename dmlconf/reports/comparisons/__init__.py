"""Reports on runs side by side: what changed, and scoreboards."""
