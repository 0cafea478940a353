"""The tables of a history, as the newest migration leaves them.

A verdict has a row in `change` only if it is the first on its case in the environment, or differs
from the one before in more than the message. So the verdict of a run on one of its cases is the
environment's latest row for the case up to that run.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

__all__ = [
    "METADATA",
    "case",
    "case_set",
    "change",
    "environment",
    "operator",
    "outcome",
    "run",
    "run_operator",
    "suite",
]

METADATA: Final = MetaData()

suite = Table(
    "suite",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
)

operator = Table(
    "operator",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
)

case = Table(
    "test_case",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("identifier", Text, nullable=False, unique=True),
    Column("operator_id", Integer, ForeignKey("operator.id"), nullable=False),
    Column("tags", Text, nullable=False),
)

environment = Table(
    "environment",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("backend", Text, nullable=False),
    Column("adapter", Text, nullable=False),
    Column("driver", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("machine", Text, nullable=False),
)
"""What a run ran on. `machine` is JSON: the platform, Python, NumPy and details of the device."""

outcome = Table(
    "outcome",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("status", String(20), nullable=False),
    Column("reason", Text, nullable=False),
    Column("message", Text, nullable=False),
    UniqueConstraint("status", "reason", "message"),
)

case_set = Table(
    "case_set",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("members", LargeBinary, nullable=False),
)
"""Which cases one or more runs had. `members` are their sorted ids, as compressed differences of
32 bits: 7, 2 and 1 for the ids 7, 9 and 10."""

run = Table(
    "run",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("header_digest", String(64), nullable=False),
    Column("started", String(40), nullable=False),
    Column("seconds", Float, nullable=False),
    Column("environment_id", Integer, ForeignKey("environment.id"), nullable=False),
    Column("suite_id", Integer, ForeignKey("suite.id"), nullable=False),
    Column("case_set_id", Integer, ForeignKey("case_set.id"), nullable=False),
    Column("dmlconf", Text, nullable=False),
    Column("catalogue_digest", String(64), nullable=False),
    Column("against", Text, nullable=False),
    Column("complete", Boolean, nullable=False),
    Column("shard", Text, nullable=False),
    Column("cases", Integer, nullable=False),
    Column("failing", Integer, nullable=False),
    Index("run_of_environment", "environment_id", "started"),
)
"""`stored_verdicts.Extent` describes the two digests, and `timeline.RunRow` most other columns."""

change = Table(
    "change",
    METADATA,
    Column("environment_id", Integer, ForeignKey("environment.id"), primary_key=True),
    Column("case_id", Integer, ForeignKey("test_case.id"), primary_key=True),
    Column("run_id", Integer, ForeignKey("run.id"), primary_key=True),
    Column("outcome_id", Integer, ForeignKey("outcome.id"), nullable=False),
    Column("outputs", BigInteger, nullable=False),
    Column("definition", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)
"""`outputs` is a digest of the bits of all outputs, or 0 without outputs. `definition` is a digest
of the case as the log describes it, or 0 without a description."""

run_operator = Table(
    "run_operator",
    METADATA,
    Column("run_id", Integer, ForeignKey("run.id"), primary_key=True),
    Column("operator_id", Integer, ForeignKey("operator.id"), primary_key=True),
    Column("cases", Integer, nullable=False),
    Column("failing", Integer, nullable=False),
    Column("seconds", Float, nullable=False),
    sqlite_with_rowid=False,
)
