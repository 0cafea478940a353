"""What the command line writes to streams and files."""
