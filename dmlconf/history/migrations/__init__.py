"""How the tables of a history came to be what they are, for Alembic."""
