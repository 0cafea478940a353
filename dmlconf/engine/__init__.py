"""The engine: a run is a value that goes in, and typed events come out."""
