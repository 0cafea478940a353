"""Generate random cases: descs and graphs, from the catalogue alone."""
