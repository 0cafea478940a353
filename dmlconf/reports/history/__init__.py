"""What a history answers: as data, as text, and as pages."""
