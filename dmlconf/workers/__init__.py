"""Worker processes: starting and ending them, their limits, and what comes back from them."""
