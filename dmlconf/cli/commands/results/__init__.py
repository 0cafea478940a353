"""Commands that read the logs of runs."""
