"""Migrations of a history's tables, for Alembic."""
