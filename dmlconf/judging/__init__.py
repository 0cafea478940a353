"""Judge outcomes: pure functions that compare them with expectations and return verdicts."""
