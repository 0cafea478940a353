"""Migration 1: create the tables that `dmlconf/history/tables.py` describes, without its index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

__all__ = ["branch_labels", "depends_on", "down_revision", "revision", "upgrade"]

revision = "1"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "suite",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
    )
    op.create_table(
        "operator",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.Text, nullable=False, unique=True),
    )
    op.create_table(
        "test_case",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("identifier", sa.Text, nullable=False, unique=True),
        sa.Column("operator_id", sa.Integer, sa.ForeignKey("operator.id"), nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
    )
    op.create_table(
        "environment",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("backend", sa.Text, nullable=False),
        sa.Column("adapter", sa.Text, nullable=False),
        sa.Column("driver", sa.Text, nullable=False),
        sa.Column("version", sa.Text, nullable=False),
        sa.Column("machine", sa.Text, nullable=False),
    )
    op.create_table(
        "outcome",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.UniqueConstraint("status", "reason", "message"),
    )
    op.create_table(
        "case_set",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("members", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "run",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False, unique=True),
        sa.Column("header_digest", sa.String(64), nullable=False),
        sa.Column("started", sa.String(40), nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("environment_id", sa.Integer, sa.ForeignKey("environment.id"), nullable=False),
        sa.Column("suite_id", sa.Integer, sa.ForeignKey("suite.id"), nullable=False),
        sa.Column("case_set_id", sa.Integer, sa.ForeignKey("case_set.id"), nullable=False),
        sa.Column("dmlconf", sa.Text, nullable=False),
        sa.Column("catalogue_digest", sa.String(64), nullable=False),
        sa.Column("against", sa.Text, nullable=False),
        sa.Column("complete", sa.Boolean, nullable=False),
        sa.Column("shard", sa.Text, nullable=False),
        sa.Column("cases", sa.Integer, nullable=False),
        sa.Column("failing", sa.Integer, nullable=False),
    )
    op.create_table(
        "change",
        sa.Column("environment_id", sa.Integer, sa.ForeignKey("environment.id"), primary_key=True),
        sa.Column("case_id", sa.Integer, sa.ForeignKey("test_case.id"), primary_key=True),
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("outcome_id", sa.Integer, sa.ForeignKey("outcome.id"), nullable=False),
        sa.Column("outputs", sa.BigInteger, nullable=False),
        sa.Column("definition", sa.BigInteger, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "run_operator",
        sa.Column("run_id", sa.Integer, sa.ForeignKey("run.id"), primary_key=True),
        sa.Column("operator_id", sa.Integer, sa.ForeignKey("operator.id"), primary_key=True),
        sa.Column("cases", sa.Integer, nullable=False),
        sa.Column("failing", sa.Integer, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sqlite_with_rowid=False,
    )
