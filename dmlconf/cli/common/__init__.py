"""Parts that many commands need: configuration, exit codes, completion, caches and logs."""
