"""Verdicts of very large logs are read into columns, which changes nothing in reports.

The tested code is in `dmlconf/run_log/columns.py`, `dmlconf/run_log/collected.py`,
`dmlconf/run_log/consistency.py`, `dmlconf/verdicts/choosing.py` and
`dmlconf/diagnosis/order_dependence.py` (the cases before a failure).
"""

from __future__ import annotations

import gc
import json
import tracemalloc
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from dmlconf.diagnosis.order_dependence import symptoms
from dmlconf.reports.formats import RUN_FORMATS
from dmlconf.reports.runs.summary import slowest_lines
from dmlconf.run_log.log import InvalidLogError, RunLog, read_log, verdict_data
from dmlconf.verdicts.verdict import Status
from tests.reports.logs import dead, everything, run_log, verdict, write

in_columns = partial(read_log, most_objects=0)
"""Read a log of any length into columns."""

COUNT = 800


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a log of COUNT verdicts with every status."""
    every = everything().verdicts
    alike = [
        each.of_case(case=f"{each.case}[N={n}]", facts={**each.facts, "N": n % 7}).ran(
            seconds=n / 7, sequence=n or None
        )
        for n in range(-(-COUNT // len(every)))
        for each in every
    ]
    return write(tmp_path_factory.mktemp("large") / "run.jsonl", run_log(*alike[:COUNT]))


@pytest.fixture(scope="module")
def both(large: Path) -> tuple[RunLog, RunLog]:
    """Return the log read into objects, and the log read into columns."""
    return read_log(large), in_columns(large)


def test_verdicts_in_columns_equal_verdict_objects(both: tuple[RunLog, RunLog]) -> None:
    objects, columns = both
    assert type(columns.verdicts) is not tuple
    assert list(map(verdict_data, columns.verdicts)) == list(map(verdict_data, objects.verdicts))
    assert (columns.header, columns.footer) == (objects.header, objects.footer)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN_FORMATS)
def test_every_report_is_equal_on_columns_and_objects(
    both: tuple[RunLog, RunLog], name: str
) -> None:
    objects, columns = both
    assert RUN_FORMATS[name].text(columns) == RUN_FORMATS[name].text(objects)
    assert slowest_lines(columns, 9) == slowest_lines(objects, 9)


def new_columns() -> int:
    """Return how many objects of the module `columns` were made since the last collection."""
    new = gc.get_objects(generation=0)
    return sum(type(each).__module__ == "dmlconf.run_log.columns" for each in new)


@pytest.mark.slow
def test_columns_of_an_unused_log_are_freed_at_once(large: Path) -> None:
    gc.disable()
    try:
        gc.collect()
        log = in_columns(large)
        assert len(list(log.verdicts)) == COUNT
        assert new_columns() > 0
        del log
        assert new_columns() == 0
    finally:
        gc.enable()


@pytest.mark.slow
def test_failures_with_nan_have_equal_earlier_cases_in_columns(
    tmp_path: Path,
) -> None:
    difference = {"tensor": "y", "coordinates": [0], "expected": "nan", "actual": 0.0}
    failed = next(each for each in everything().verdicts if each.status is Status.FAILED)
    assert failed.reason is not None
    reason = replace(failed.reason, differences=(difference,))
    verdicts = [
        failed.of_case(case=f"case/{n}")
        .judged(reason=replace(reason, message=str(n)))
        .ran(sequence=None)
        for n in range(600)
    ]
    path = write(tmp_path / "run.jsonl", run_log(*verdicts))
    before = [each.before for each in symptoms(read_log(path))]
    assert any(before)
    assert [each.before for each in symptoms(in_columns(path))] == before


def test_a_log_that_has_only_a_header_is_read(tmp_path: Path) -> None:
    log = in_columns(write(tmp_path / "run.jsonl", dead(run_log(), 7)))
    assert list(log.verdicts) == []
    assert "INCOMPLETE" in RUN_FORMATS["html"].text(log)


def test_two_lines_of_a_case_must_have_equal_verdicts(
    tmp_path: Path,
) -> None:
    one, other = verdict("gather/matrix[N=1]"), verdict("gather/matrix[N=2]")
    again = dead(run_log(one, other, one), 3)
    path = write(tmp_path / "again.jsonl", again)
    assert read_log(path).verdicts == (other, one)
    assert tuple(in_columns(path).verdicts) == (other, one)
    failed = next(each for each in everything().verdicts if each.status is Status.FAILED)
    path = write(tmp_path / "otherwise.jsonl", dead(run_log(one, failed.of_case(case=one.case)), 2))
    assert problem(path, 0) == problem(path, 9)
    assert "has another verdict in line 2: `passed` there, `failed` here" in problem(path, 9)


@pytest.mark.parametrize(
    ("field", "number"), [("place", COUNT + 1), ("place", 0), ("place", 10**30), ("case", 1)]
)
def test_contradictions_are_reported_alike_in_columns(
    large: Path, tmp_path: Path, field: str, number: int
) -> None:
    """One verdict gets `number` as its place, or the case of `lines[number]`."""
    path = tmp_path / "changed.jsonl"
    lines = large.read_text("utf-8").splitlines()
    changed = json.loads(lines[77])
    changed[field] = number if field == "place" else json.loads(lines[number])["case"]
    path.write_text("\n".join([*lines[:77], json.dumps(changed), *lines[78:], ""]), "utf-8")
    assert problem(path, 0) == problem(path, 9999)


def problem(path: Path, most_objects: int) -> str:
    """Return why a log is refused; more than `most_objects` verdicts are read into columns."""
    with pytest.raises(InvalidLogError) as raised:
        read_log(path, most_objects=most_objects)
    return str(raised.value)


def test_a_number_of_more_than_64_bits_is_read(tmp_path: Path) -> None:
    one = verdict("gather/matrix[N=1]").ran(process=1, sequence=10**30)
    path = write(tmp_path / "run.jsonl", run_log(one))
    assert in_columns(path).verdicts[0].execution.sequence == 10**30


@pytest.mark.slow
def test_reported_verdict_takes_less_than_300_bytes(
    both: tuple[RunLog, RunLog], tmp_path: Path
) -> None:
    # JUnit lists up to 10,000 cases one by one.
    names = [f"tile/large[Number={number}]" for number in range(10_001)]
    path = write(tmp_path / "run.jsonl", run_log(*map(verdict, names)))
    most = {}
    formats = ("html", "junit", "markdown")
    for name in formats:
        RUN_FORMATS[name].text(both[1])  # What is loaded and compiled once does not count.
    tracemalloc.start()
    log = in_columns(path)
    for name in formats:
        assert sum(map(len, RUN_FORMATS[name].parts(log))) > 500
        _, most[name] = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
    tracemalloc.stop()
    assert {name: peak for name, peak in most.items() if peak >= 300 * len(names)} == {}
