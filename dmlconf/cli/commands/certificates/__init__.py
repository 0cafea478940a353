"""Commands for certificates."""
