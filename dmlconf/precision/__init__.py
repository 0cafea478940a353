"""How far an output is from the expected values, and whether that is near enough."""
