"""Write and read run logs: JSON Lines from which reports on a run are made.

The first line is the header, then comes one line for each verdict, then the footer. If a failing
case may run again, each attempt has a line before the case's verdict. A run that dies leaves a log
without a footer. The form is `schemas/run-log.schema.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, Final

from dmlconf.documents.problems import ExpectedError
from dmlconf.run_log.collected import LoggedColumns, LoggedObjects
from dmlconf.run_log.columns import MOST_OBJECTS
from dmlconf.run_log.consistency import (
    LoggedVerdict,
    Repeated,
    contradiction,
    contradiction_error,
    other_cases,
)
from dmlconf.run_log.lines import FORMAT, InvalidLogError, log_lines, not_a_log
from dmlconf.run_log.packed import MANY, packing
from dmlconf.verdicts.record import record_of, value_of
from dmlconf.verdicts.verdict import Verdict

__all__ = [
    "FORMAT",
    "Footer",
    "Header",
    "InvalidLogError",
    "LogWriteError",
    "LogWriter",
    "RunLog",
    "footer_of",
    "header_of",
    "read_back",
    "read_log",
    "rewrite",
    "verdict_data",
    "verdict_of",
]


class LogWriteError(ExpectedError):
    """The log can no longer be written, as on a full disk; the message says why.

    Attributes:
        failing: whether a verdict so far fails the run.
    """

    failing = False


@dataclass(frozen=True, slots=True)
class Header:
    """What is known before the first case runs.

    Attributes:
        started: date and time in UTC, ISO 8601.
        backend: the backend as named on the command line.
        against: the source of expected values that cases do not state, as `--against` names it.
        environment: what the backend runs on, and Python, NumPy and the operating system; for a
            fleet, of its first worker.
        paths: the paths of the suite.
        suite_digest: `Suite.digest`.
        selected: how many cases were selected; 0 while `fuzz` does not know.
        options: the options on which the verdicts depend.
        cases_digest: the digest of the selected cases' identifiers; None in logs of `fuzz`, of
            certificates and of older versions.
        shard: which part of a plan was selected, as `Selected.record` has it; None for the whole.
        workers: the name and the environment of each worker of a fleet, or of each log if logs of
            different environments were merged; otherwise empty.
        merged_shards: if a merged log lacks shards and their cases, the `count` of all shards and
            the `numbers` of the present ones; otherwise None.
    """

    dmlconf: str
    started: str
    backend: str
    against: str
    environment: Mapping[str, Any]
    paths: tuple[str, ...]
    suite_digest: str
    catalogue_digest: str
    selected: int
    options: Mapping[str, Any]
    cases_digest: str | None = None
    shard: Mapping[str, Any] | None = None
    workers: tuple[Mapping[str, Any], ...] = ()
    merged_shards: Mapping[str, Any] | None = None

    @property
    def planned(self) -> int:
        """How many cases the whole plan has, of which a shard has a part."""
        return self.selected if self.shard is None else int(self.shard["planned"])

    @property
    def plan_digest(self) -> str | None:
        """The digest of all identifiers of the whole plan; None if the header lacks it."""
        return self.cases_digest if self.shard is None else str(self.shard["plan_digest"])


@dataclass(frozen=True, slots=True)
class Footer:
    """What is known after the last case.

    Attributes:
        finished: date and time in UTC, ISO 8601.
        complete: whether every selected case was run.
        summary: number of verdicts by status.
        cases_digest: the digest of the selected cases' identifiers; None in logs of certificates
            and of older versions.
        kept_verdicts: how many cases had a verdict other than `not run` when the run was last
            resumed; None if it was not resumed.
    """

    finished: str
    seconds: float
    complete: bool
    summary: Mapping[str, int]
    cases_digest: str | None = None
    kept_verdicts: int | None = None


@dataclass(frozen=True, slots=True)
class RunLog:
    """The content of a run log; its footer is None if the log ends early."""

    header: Header
    verdicts: Sequence[Verdict]
    footer: Footer | None

    @property
    def complete(self) -> bool:
        """Whether there is a footer that says that every selected case was run."""
        return self.footer is not None and self.footer.complete


_ENCODER: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=str)


class LogWriter:
    """Writes a run log line by line, so that no verdict is lost if the run dies.

    Every method that writes a line raises `LogWriteError` if the line cannot be written.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._digest = sha256()

    @property
    def digest(self) -> str:
        """The SHA-256 of all written lines, in hexadecimal."""
        return self._digest.hexdigest()

    def header(self, header: Header) -> None:
        """Write the first line."""
        self._write({"record": "header", "format": FORMAT, **record_of(header)})

    def verdict(self, verdict: Verdict, place: int) -> None:
        """Write a verdict and its case's place in the plan; cases may come in any order."""
        self._write({"record": "verdict", "place": place, **verdict_data(verdict)})

    def attempt(self, verdict: Verdict, place: int) -> None:
        """Write one of the runs of a failing case before its verdict."""
        self._write({"record": "attempt", "place": place, **verdict_data(verdict)})

    def footer(self, footer: Footer) -> None:
        """Write the last line."""
        self._write({"record": "footer", **record_of(footer)})

    def _write(self, record: Mapping[str, Any]) -> None:
        line = _ENCODER.encode(record) + "\n"
        try:
            self._stream.write(line)
            self._stream.flush()
            self._digest.update(line.encode("utf-8"))
        except OSError as error:
            name, reason = getattr(self._stream, "name", "?"), error.strerror or error
            raise LogWriteError(f"the run log {name} cannot be written: {reason}") from error


def rewrite(log: RunLog, writer: LogWriter) -> None:
    """Write a log again, with places from 0.

    In the header, `selected` becomes the number of verdicts.

    Raises:
        LogWriteError: the log cannot be written.
    """
    writer.header(replace(log.header, selected=len(log.verdicts)))
    for place, verdict in enumerate(log.verdicts):
        writer.verdict(verdict, place)
    if log.footer is not None:
        writer.footer(log.footer)


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON values, with infinities and NaN spelled as text."""
    return record_of(verdict)


def read_log(
    path: Path,
    *,
    own: bool = False,
    keep: Callable[[Verdict], Verdict] = lambda verdict: verdict,
    most_objects: int = MOST_OBJECTS,
) -> RunLog:
    """Read a run log, which may end early.

    Verdicts are in the order of the plan or, if the log lacks places, of their lines. The last of
    several verdicts on a case counts. If the run died between a case's attempts and its verdict,
    the first attempt is the verdict. If `selected` is 0 since a run of `fuzz` died, it becomes the
    number of cases that had begun.

    Args:
        own: whether this process has just written the log; then it is not checked.
        keep: returns a verdict without the parts that the caller does not need.
        most_objects: with more selected cases than this, verdicts are kept in columns
            (`dmlconf.run_log.columns`) if their numbers fit.

    Raises:
        InvalidLogError: the file cannot be read, is not a run log, or contradicts itself.
    """
    try:
        return _read(path, own, keep, most_objects)
    except OverflowError:  # A number is too large for its column.
        return _read(path, own, keep, sys.maxsize)


def _read(path: Path, own: bool, keep: Callable[[Verdict], Verdict], most_objects: int) -> RunLog:
    logged: LoggedObjects | LoggedColumns = LoggedObjects()
    attempts: dict[str, LoggedVerdict] = {}
    pack: Callable[[Verdict], Verdict] = _unpacked
    header: Header | None = None
    footer: tuple[int, Footer] | None = None
    for number, record, _ in log_lines(path, own=own):
        kind = record["record"]
        if kind == "header":
            header = header_of(record)
            if header.selected > MANY:
                pack = packing()
            if header.selected > most_objects:
                logged = LoggedColumns()
        elif kind == "footer":
            footer = number, footer_of(record)
        else:
            verdict = keep(verdict_of(record))
            if kind == "attempt" or isinstance(logged, LoggedObjects):
                verdict = pack(verdict)
            entry = LoggedVerdict(number, record.get("place"), verdict)
            if kind == "verdict":
                logged.add(entry)
                attempts.pop(verdict.case, None)
            else:
                attempts.setdefault(verdict.case, entry)
    for entry in attempts.values():  # The run died before these cases had verdicts.
        logged.add(entry)
    if header is None:
        raise not_a_log(path, 1, "the file is empty")
    repeated = logged.repeated()
    if not header.selected:
        header = replace(header, selected=_begun(logged))
    if not own:
        _check_consistency(path, header, logged, repeated, footer)
    return RunLog(header, logged.in_order(repeated), footer and footer[1])


def _begun(logged: LoggedObjects | LoggedColumns) -> int:
    """Return how many cases a run of `fuzz` that died had begun, as far as its verdicts show."""
    places = (each.place + 1 for each in logged if each.place is not None)
    return max(len(set(logged.cases())), max(places, default=0))


def _unpacked(verdict: Verdict) -> Verdict:
    return verdict


def _check_consistency(
    path: Path,
    header: Header,
    logged: LoggedObjects | LoggedColumns,
    repeated: Repeated | None,
    footer: tuple[int, Footer] | None,
) -> None:
    end = (footer[0], footer[1].summary, footer[1].complete) if footer else None
    problem = contradiction(header.selected, logged, end, header.planned, repeated)
    if problem is None and footer is not None and footer[1].cases_digest is not None:
        cases = set(logged.cases()) if repeated is None or repeated.cases else logged.cases()
        problem = other_cases(cases, footer[0], footer[1].cases_digest)
    if problem is not None:
        raise contradiction_error(path, problem)


def read_back(header: Header) -> Header:
    """Return a header as read from its log, with JSON values as options."""
    return header_of(json.loads(_ENCODER.encode(record_of(header))))


def header_of(record: Mapping[str, Any]) -> Header:
    """Return the header in a record of a log."""
    return value_of(Header, record)


def footer_of(record: Mapping[str, Any]) -> Footer:
    """Return the footer in a record of a log."""
    return value_of(Footer, record)


def verdict_of(record: Mapping[str, Any]) -> Verdict:
    """Return the verdict in a record of a log."""
    return value_of(Verdict, record)
