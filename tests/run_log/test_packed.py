"""Verdicts of large logs are packed in memory, and still equal the verdicts that were written.

The tested code is in `dmlconf/run_log/packed.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dmlconf.run_log.log import read_log, verdict_data
from dmlconf.run_log.packed import MANY, Packed
from dmlconf.verdicts.verdict import Verdict
from tests.reports.logs import EVERY_STATUS, FAILED, dead, run_log, write

DETAILED = FAILED.of_case(
    case="gather/detailed",
    facts={"Axis": 1, "InputTensor": "FLOAT16 2x3"},
    files={"data.npy": "ab" * 32},
).ran(output_digests={"OutputTensor": "0123456789abcdef"})
"""A failure with facts, files and digests, which the other verdicts lack."""


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Verdict]:
    """Return the verdicts in a log without a footer, of a run of more than MANY cases."""
    other = DETAILED.of_case(case="gather/other")
    log = dead(run_log(*EVERY_STATUS, DETAILED, other), MANY + 1)
    path = tmp_path_factory.mktemp("log") / "run.jsonl"
    return read_log(write(path, log)).verdicts


def test_packed_verdicts_equal_the_written_verdicts(verdicts: tuple[Verdict, ...]) -> None:
    written = (*EVERY_STATUS, DETAILED)
    assert isinstance(verdicts[0].figures, Packed)
    assert [*map(verdict_data, verdicts[: len(written)])] == [*map(verdict_data, written)]


def test_equal_parts_of_packed_verdicts_are_one_object(verdicts: tuple[Verdict, ...]) -> None:
    one, other = (each for each in verdicts if each.facts)
    assert one.facts is other.facts
    assert one.figures is other.figures
    assert one.identity.files is other.identity.files
    assert one.identity.tags is other.identity.tags
    assert one.location is other.location
    assert one.execution.output_digests is other.execution.output_digests
