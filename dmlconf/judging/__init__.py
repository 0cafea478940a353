"""Judge outcomes: compare them with expectations, and return verdicts."""
