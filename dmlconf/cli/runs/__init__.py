"""How commands drive the engine."""
