"""From an outcome and what is expected to a verdict, as pure functions."""
