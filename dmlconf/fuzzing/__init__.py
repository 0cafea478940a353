"""Generate random cases: valid descs, descs that break a constraint, and graphs."""
