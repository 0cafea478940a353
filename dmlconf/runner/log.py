"""The run log: JSON Lines, written as verdicts are reached, and the only truth of a run.

The first line is the header, then comes one line for each verdict, then the footer. A run that
dies leaves a log without its footer, and with every verdict that it had reached. The form is
`schemas/run-log.schema.json`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any, Final

from dmlconf.cases.model import Provenance
from dmlconf.runner.verdict import Reason, ReasonKind, Status, Verdict

__all__ = [
    "FORMAT",
    "Footer",
    "Header",
    "InvalidLogError",
    "LogWriter",
    "RunLog",
    "read_log",
    "verdict_data",
]

FORMAT: Final = 1
"""Version of the form; it grows when a reader of the old form could be misled."""


class InvalidLogError(Exception):
    """A file that is not a run log of a known form; the message names file, line and fault."""


@dataclass(frozen=True, slots=True)
class Header:
    """What is known before the first case runs.

    Attributes:
        dmlconf: version of dmlconf.
        started: date and time in UTC, ISO 8601.
        backend: the backend as named on the command line.
        against: what gives the expected values that cases do not state, as named there.
        environment: what the backend runs on, and Python, NumPy and the operating system.
        paths: the paths of the suite, as given.
        suite_digest: SHA-256 of all case files.
        catalogue_digest: SHA-256 of the catalogue.
        selected: how many cases were selected.
        options: the selection and limits as given on the command line.
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


@dataclass(frozen=True, slots=True)
class Footer:
    """What is known at the end.

    Attributes:
        finished: date and time in UTC, ISO 8601.
        seconds: how long the run took.
        complete: whether every selected case was run.
        summary: number of verdicts by status.
    """

    finished: str
    seconds: float
    complete: bool
    summary: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class RunLog:
    """A run log that was read.

    Attributes:
        header: its first line.
        verdicts: one for each selected case that has one.
        footer: its last line; None where the run died.
    """

    header: Header
    verdicts: tuple[Verdict, ...]
    footer: Footer | None

    @property
    def complete(self) -> bool:
        """Whether every selected case was run."""
        return self.footer is not None and self.footer.complete


_ENCODER: Final = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=str)


class LogWriter:
    """Writes a run log line by line, so that nothing reached is lost."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def header(self, header: Header) -> None:
        """Write the first line."""
        self._write({"record": "header", "format": FORMAT, **asdict(header)})

    def verdict(self, verdict: Verdict) -> None:
        """Write one verdict."""
        self._write({"record": "verdict", **verdict_data(verdict)})

    def footer(self, footer: Footer) -> None:
        """Write the last line."""
        self._write({"record": "footer", **asdict(footer)})

    def _write(self, record: Mapping[str, Any]) -> None:
        self._stream.write(_ENCODER.encode(record) + "\n")
        self._stream.flush()


def verdict_data(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as JSON has it; it differs from the value only in infinities and NaN."""
    reason = verdict.reason
    data: dict[str, Any] = {
        "case": verdict.case,
        "operator": verdict.operator,
        "tags": verdict.tags,
        "status": verdict.status,
        "expectation": verdict.expectation,
        "reason": None,
        "figures": {name: _finite(figures) for name, figures in verdict.figures.items()},
        "seconds": round(verdict.seconds, 6),
        "location": verdict.location,
    }
    if verdict.dispatch_seconds:
        data["dispatch_seconds"] = [round(seconds, 9) for seconds in verdict.dispatch_seconds]
    if verdict.unchecked_outputs:
        data["unchecked_outputs"] = list(verdict.unchecked_outputs)
    if reason is not None:
        data["reason"] = {
            "kind": reason.kind,
            "message": reason.message,
            "differences": [_finite(difference) for difference in reason.differences],
            "diagnostics": reason.diagnostics,
        }
    return data


def _finite(record: Mapping[str, Any]) -> dict[str, Any]:
    """Spell infinities and NaN, which JSON lacks, as text that `float` reads."""
    return {
        key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in record.items()
    }


def read_log(path: Path) -> RunLog:
    """Read a run log, also one that ends early.

    Where a case has more than one verdict, as after a resumed run, the last one counts.

    Raises:
        InvalidLogError: the file cannot be read or is not a run log.
    """
    records = _records(path)
    first = next(records, None)
    if first is None or first.get("record") != "header":
        raise InvalidLogError(f"{path}:1: not a dmlconf run log: its first line is no header")
    if first.get("format") != FORMAT:
        raise InvalidLogError(
            f"{path}:1: a run log of form {first.get('format')}; this dmlconf reads form {FORMAT}"
        )
    verdicts: dict[str, Verdict] = {}
    footer = None
    line = 1
    try:
        header = _header(first)
        for record in records:
            line += 1
            if record["record"] == "verdict":
                verdict = _verdict(record)
                verdicts[verdict.case] = verdict
            elif record["record"] == "footer":
                footer = _footer(record)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidLogError(f"{path}:{line}: a record that cannot be read: {error}") from error
    return RunLog(header, tuple(verdicts.values()), footer)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open(encoding="utf-8") as stream:
            lines = iter(enumerate(stream, 1))
            for number, line in lines:
                try:
                    record = json.loads(line)
                except ValueError as error:
                    if not line.endswith("\n"):
                        return  # The run died while it wrote this line.
                    raise InvalidLogError(f"{path}:{number}: not JSON: {error}") from error
                if not isinstance(record, dict):
                    raise InvalidLogError(f"{path}:{number}: not a record")
                yield record
    except UnicodeDecodeError as error:
        raise InvalidLogError(f"{path}: not a run log: it is not UTF-8") from error
    except OSError as error:
        raise InvalidLogError(f"{path}: cannot be read: {error.strerror}") from error


def _header(record: Mapping[str, Any]) -> Header:
    data = {key: value for key, value in record.items() if key not in ("record", "format")}
    header = Header(**data)
    return replace(header, paths=tuple(header.paths))


def _footer(record: Mapping[str, Any]) -> Footer:
    return Footer(**{key: value for key, value in record.items() if key != "record"})


def _verdict(record: Mapping[str, Any]) -> Verdict:
    data = {key: value for key, value in record.items() if key != "record"}
    data["tags"] = tuple(data["tags"])
    data["dispatch_seconds"] = tuple(data.get("dispatch_seconds", ()))
    data["unchecked_outputs"] = tuple(data.get("unchecked_outputs", ()))
    data["status"] = Status(data["status"])
    data["expectation"] = Provenance(data["expectation"]) if data["expectation"] else None
    if data["reason"] is not None:
        reason = data["reason"]
        data["reason"] = Reason(
            ReasonKind(reason["kind"]),
            reason["message"],
            tuple(_numbers(difference) for difference in reason["differences"]),
            reason["diagnostics"],
        )
    data["figures"] = {name: _numbers(figures) for name, figures in data["figures"].items()}
    return Verdict(**data)


def _numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    """Read back what `_finite` spelled."""
    return {
        key: float(value) if value in ("inf", "-inf", "nan") else value
        for key, value in record.items()
    }
