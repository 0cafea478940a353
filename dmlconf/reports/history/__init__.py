"""Reports on a history, the database of runs: as data, as text, as pages, and as a feed."""
