"""Output of the command line to streams and files."""
