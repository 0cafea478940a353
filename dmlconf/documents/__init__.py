"""YAML files that people write: reading, checking, and errors that point at the line."""
