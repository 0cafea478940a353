"""A small suite, a job that runs it, and what two logs of its runs must have in common."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import dmlconf
from dmlconf.backends.registry import parse
from dmlconf.cases.loading.loader import load_suite
from dmlconf.catalogue.loader import catalogue_digest
from dmlconf.fleet.service import Job
from dmlconf.workers.execution import Limits

__all__ = ["MATRIX", "job_of", "untimed"]

MATRIX: Final = """
operator: TILE
cases:
  - name: tiles
    note: Two by two, and Number changes nothing.
    matrix: {Number: [0, 1, 2]}
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 2]}
  - name: wrong
    note: What it expects is not right.
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 3]}
"""
"""Three cases that the reference passes, and one that it fails."""

_OF_ONE_RUN: Final = frozenset(
    {
        "started",
        "finished",
        "seconds",
        "kept_verdicts",
        "worker",
        "workers",
        "merged_shards",
        "process",
        "sequence",
    }
)
"""Fields that may differ between two runs of one plan."""


def job_of(path: Path) -> Job:
    return Job(
        identifier="job",
        dmlconf=dmlconf.__version__,
        suite_digest=load_suite([path]).digest,
        catalogue_digest=catalogue_digest(),
        paths=(str(path),),
        operators=frozenset({"TILE"}),
        challenge=None,
        backend=parse("numpy"),
        against="auto",
        limits=Limits(),
    )


def untimed(log: Path) -> list[dict[str, Any]]:
    """Return a log's records in the order of the plan, without the fields of `_OF_ONE_RUN`."""
    records = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    places = [
        -1 if record["record"] == "header" else record.get("place", len(records))
        for record in records
    ]
    order = sorted(range(len(records)), key=places.__getitem__)
    return [
        {key: value for key, value in records[at].items() if key not in _OF_ONE_RUN} for at in order
    ]
