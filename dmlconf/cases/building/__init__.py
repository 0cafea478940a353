"""From the entries of a case file to the case."""
