"""The run log: JSON Lines, written as verdicts are reached, and the only truth of a run.

The first line is the header, then comes one line for each verdict, then the footer. A run that
dies leaves a log without its footer, and with every verdict that it had reached. The form is
`schemas/run-log.schema.json`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import IO, Any, Final

from dmlconf.cases.model import Provenance
from dmlconf.documents.files import UnreadableFileError, open_regular
from dmlconf.documents.problems import ExpectedError, printable
from dmlconf.documents.schema import Checker, bundled_schema, first_error
from dmlconf.runner.log_consistency import LoggedVerdict, contradiction, other_cases
from dmlconf.runner.verdict import Reason, ReasonKind, Status, Verdict

__all__ = [
    "FORMAT",
    "Footer",
    "Header",
    "InvalidLogError",
    "LogWriteError",
    "LogWriter",
    "RunLog",
    "read_log",
    "verdict_data",
]

LONGEST_LINE_BYTES: Final = 1 << 24
"""No verdict comes near: what is longer is no log."""

FORMAT: Final = 1
"""Version of the form; it grows when a reader of the old form could be misled."""


class InvalidLogError(ExpectedError):
    """A file that is not a run log of a known form; the message names file, line and fault."""


class LogWriteError(ExpectedError):
    """The log cannot be written any more, as on a full disk; the message says why.

    Attributes:
        failing: whether a verdict that was reached fails the run.
    """

    failing = False


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
        cases_digest: `cases_digest` of the selected cases; None in logs of older versions.
    """

    finished: str
    seconds: float
    complete: bool
    summary: Mapping[str, int]
    cases_digest: str | None = None


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
    """Writes a run log line by line, so that nothing reached is lost.

    Every method raises `LogWriteError` where the line cannot be written.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def header(self, header: Header) -> None:
        """Write the first line."""
        self._write({"record": "header", "format": FORMAT, **asdict(header)})

    def verdict(self, verdict: Verdict, place: int) -> None:
        """Write one verdict.

        Args:
            verdict: the verdict.
            place: the place of its case in the plan, from 0: verdicts are reached in any order.
        """
        self._write({"record": "verdict", "place": place, **verdict_data(verdict)})

    def footer(self, footer: Footer) -> None:
        """Write the last line."""
        record = {"record": "footer", **asdict(footer)}
        if footer.cases_digest is None:
            del record["cases_digest"]
        self._write(record)

    def _write(self, record: Mapping[str, Any]) -> None:
        line = _ENCODER.encode(record) + "\n"
        try:
            self._stream.write(line)
            self._stream.flush()
        except OSError as error:
            name, reason = getattr(self._stream, "name", "?"), error.strerror or error
            raise LogWriteError(f"the run log {name} cannot be written: {reason}") from error


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
    if verdict.output_digests:
        data["output_digests"] = dict(verdict.output_digests)
    if verdict.origin is not None:
        data["origin"] = verdict.origin
    if verdict.files:
        data["files"] = dict(verdict.files)
    if verdict.example is not None:
        data["example"] = str(verdict.example)
    if verdict.facts:
        data["facts"] = dict(verdict.facts)
    if verdict.feature_level is not None:
        data["feature_level"] = verdict.feature_level
    if verdict.circumstance is not None:
        data["circumstance"] = verdict.circumstance
    if verdict.circumstances:
        data["circumstances"] = dict(verdict.circumstances)
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
    return {key: _spelled(value) for key, value in record.items()}


def _spelled(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return [_spelled(item) for item in value] if isinstance(value, list) else value


def read_log(
    path: Path, *, own: bool = False, keep: Callable[[Verdict], Verdict] = lambda verdict: verdict
) -> RunLog:
    """Read a run log, also one that ends early.

    Verdicts come in the order of the plan, where the log tells it.

    Args:
        path: the log.
        own: whether this process has just written it, so that neither its form nor its
            consistency needs a check.
        keep: returns what to keep of each verdict.

    Raises:
        InvalidLogError: the file cannot be read, is not a run log, or contradicts itself.
    """
    logged: list[LoggedVerdict] = []
    header: Header | None = None
    footer: tuple[int, Footer] | None = None
    for line, record in _records(path, own=own):
        kind = record["record"]
        if footer is not None:
            raise InvalidLogError(f"{path}:{line}: not a dmlconf run log: a line after the footer")
        if kind == "header" and line > 1:
            raise InvalidLogError(f"{path}:{line}: not a dmlconf run log: a second header")
        if kind == "header":
            header = _header(record)
        elif kind == "verdict":
            logged.append(LoggedVerdict(line, record.get("place"), keep(_verdict(record))))
        else:
            footer = line, _footer(record)
    if header is None:
        raise InvalidLogError(f"{path}:1: not a dmlconf run log: its first line is no header")
    if not own:
        _check_consistency(path, header.selected, logged, footer)
    verdicts = {entry.verdict.case: entry for entry in logged}
    in_order = sorted(verdicts.values(), key=_order)
    return RunLog(header, tuple(entry.verdict for entry in in_order), footer and footer[1])


def _order(logged: LoggedVerdict) -> int:
    return logged.line if logged.place is None else logged.place


def _check_consistency(
    path: Path, selected: int, logged: Sequence[LoggedVerdict], footer: tuple[int, Footer] | None
) -> None:
    """Refuse a log that contradicts itself."""
    end = (footer[0], footer[1].summary, footer[1].complete) if footer else None
    problem = contradiction(selected, logged, end)
    if problem is None and footer is not None and footer[1].cases_digest is not None:
        problem = other_cases(logged, footer[0], footer[1].cases_digest)
    if problem is not None:
        message = f"the log contradicts itself: {problem.message}"
        raise InvalidLogError(printable(f"{path}:{problem.line}: {message}"))


def _records(path: Path, *, own: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the record of each line; every record fits the schema.

    Raises:
        InvalidLogError: the file cannot be read, or a line is no record.
    """
    try:
        with open_regular(path) as stream:
            number = 0
            while line := stream.readline(LONGEST_LINE_BYTES + 1):
                number += 1
                if len(line) > LONGEST_LINE_BYTES:
                    message = f"a line of more than {LONGEST_LINE_BYTES:,} bytes"
                    raise InvalidLogError(f"{path}:{number}: not a run log: {message}")
                try:
                    record = json.loads(line)
                except (ValueError, RecursionError) as error:
                    if not line.endswith(b"\n") and number > 1:
                        return  # The run died while it wrote this line.
                    raise InvalidLogError(f"{path}:{number}: not JSON: {error}") from error
                if not own:
                    _check(path, number, record)
                yield number, record
    except UnreadableFileError as error:
        raise InvalidLogError(f"{path} {error}") from error
    except OSError as error:
        raise InvalidLogError(f"{path} cannot be read: {error.strerror}") from error


def _check(path: Path, number: int, record: Any) -> None:
    """Refuse a line that does not fit the schema, or is of another version of the form."""
    kind = record.get("record") if isinstance(record, dict) else None
    if number == 1 and kind != "header":
        raise InvalidLogError(f"{path}:1: not a dmlconf run log: its first line is no header")
    checker = _checker(_DEFINITIONS.get(kind, "") if isinstance(kind, str) else "")
    if checker.is_valid(record):
        return
    form = record.get("format", FORMAT) if isinstance(record, dict) else FORMAT
    if form != FORMAT:
        message = f"a run log of form {form}; this dmlconf reads form {FORMAT}"
    else:
        message = f"not a record of a run log: {first_error(checker, record)}"
    raise InvalidLogError(f"{path}:{number}: {message}")


_DEFINITIONS: Final = {"header": "header", "verdict": "verdictLine", "footer": "footer"}


@cache
def _checker(definition: str) -> Checker:
    """Return what checks a record of one kind; of no known kind where that has no definition."""
    schema = bundled_schema("run-log")
    if definition:
        schema = {"$defs": schema["$defs"], "$ref": f"#/$defs/{definition}"}
    return Checker(schema)


def _header(record: Mapping[str, Any]) -> Header:
    data = {key: value for key, value in record.items() if key not in ("record", "format")}
    header = Header(**data)
    return replace(header, paths=tuple(header.paths))


def _footer(record: Mapping[str, Any]) -> Footer:
    return Footer(**{key: value for key, value in record.items() if key != "record"})


def _verdict(record: Mapping[str, Any]) -> Verdict:
    data = {key: value for key, value in record.items() if key not in ("record", "place")}
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
    return {key: _number(value) for key, value in record.items()}


def _number(value: Any) -> Any:
    if isinstance(value, list):
        return [_number(item) for item in value]
    return float(value) if value in ("inf", "-inf", "nan") else value
