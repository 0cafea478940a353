"""Compare outputs with expected values under precision rules."""
