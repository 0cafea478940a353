"""How far an output is from what is expected, and whether that is near enough."""
