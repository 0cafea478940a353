"""Makes case files of cases."""
