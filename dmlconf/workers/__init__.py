"""Worker processes: starting and ending them, what comes back, and the resources that they use."""
