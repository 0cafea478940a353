"""Commands for those who write cases."""
