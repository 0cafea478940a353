"""Which parts of the documentation a suite covers, and which it does not."""
