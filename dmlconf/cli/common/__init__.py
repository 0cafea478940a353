"""Parts that every command needs: configuration, exit codes, completion, caches and logs."""
