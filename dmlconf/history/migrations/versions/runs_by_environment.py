"""Migration 2: add an index by which the runs of an environment are found in order."""

from __future__ import annotations

from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "revision", "upgrade"]

revision = "2"
down_revision = "1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the index."""
    op.create_index("run_of_environment", "run", ["environment_id", "started"])
