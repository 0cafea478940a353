"""Read the lines of a run log, and check each against the schema."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from dmlconf.cases.logged_facts import facts_problem
from dmlconf.documents.files import UnreadableFileError, is_folder, open_regular
from dmlconf.documents.problems import ExpectedError, printable
from dmlconf.documents.schema import Checker, bundled_schema, first_error
from dmlconf.documents.trees import parsed_json
from dmlconf.limits import LONGEST_LOG_LINE
from dmlconf.run_log.other_files import about_folder, about_line
from dmlconf.verdicts.schema import with_statuses

__all__ = ["FORMAT", "InvalidLogError", "LogLine", "log_lines", "not_a_log", "require_short"]

FORMAT: Final = 1
"""Version of the form of run logs; changes that could mislead older readers raise it."""


class InvalidLogError(ExpectedError):
    """A run log that cannot be used; the message says why."""


class LogLine(NamedTuple):
    """One line of a run log.

    Attributes:
        number: from 1.
        record: the JSON object in the line, checked unless `log_lines` was called with `own`.
        end: how many bytes the file has up to the end of the line.
    """

    number: int
    record: dict[str, Any]
    end: int


def log_lines(path: Path, *, own: bool = False, damaged_end: bool = False) -> Iterator[LogLine]:
    """Yield the lines of a run log; an empty file has none.

    Unless it is the first line, a last line that is not JSON and has no line feed is left out: the
    run died while it wrote the line.

    Args:
        own: whether this process has written or checked the log; then records are not checked.
        damaged_end: whether to stop at a line with a NUL byte, as a power cut may leave; the first
            line is read in any case.

    Raises:
        InvalidLogError: the file cannot be read, a line is not a record of this version's form or
            is too long, or a header or footer is in the wrong place.
    """
    try:
        with open_regular(path) as stream:
            number, end, ended = 0, 0, False
            while line := stream.readline(LONGEST_LOG_LINE + 1):
                number += 1
                end += len(line)
                require_short(path, number, line)
                if damaged_end and number > 1 and b"\0" in line:
                    return
                try:
                    record = json.loads(line) if own else parsed_json(line)
                except ValueError as error:
                    if not line.endswith(b"\n") and number > 1:
                        return
                    if number == 1:
                        raise not_a_log(path, 1, about_line(path, line, error)) from error
                    raise InvalidLogError(f"{path}:{number}: not JSON: {error}") from error
                if not own:
                    _check(path, number, record)
                if ended:
                    raise not_a_log(path, number, "a line after the footer")
                if number > 1 and record["record"] == "header":
                    raise not_a_log(path, number, "a second header")
                ended = record["record"] == "footer"
                yield LogLine(number, record, end)
    except UnreadableFileError as error:
        message = about_folder(path) if is_folder(path) else f"{path} {error}"
        raise InvalidLogError(printable(message)) from error
    except OSError as error:
        raise InvalidLogError(f"{path} cannot be read: {error.strerror}") from error


def require_short(path: Path, number: int, line: bytes) -> None:
    """Check the length of a line, of which `LONGEST_LOG_LINE + 1` bytes at most were read.

    Raises:
        InvalidLogError: the line is longer than `LONGEST_LOG_LINE`.
    """
    if len(line) > LONGEST_LOG_LINE:
        message = f"not a run log: a line of more than {LONGEST_LOG_LINE:,} bytes"
        raise InvalidLogError(printable(f"{path}:{number}: {message}"))


def not_a_log(path: Path, line: int, message: str) -> InvalidLogError:
    """Return the error about a file that is not a run log."""
    return InvalidLogError(f"{path}:{line}: not a dmlconf run log: {message}")


def _check(path: Path, number: int, record: Any) -> None:
    """Raise `InvalidLogError` unless a line has this version's form."""
    kind = record.get("record") if isinstance(record, dict) else None
    if number == 1 and kind != "header":
        raise not_a_log(path, 1, "its first line is not a header")
    checker = _checker(_DEFINITIONS.get(kind, "") if isinstance(kind, str) else "")
    if checker.is_valid(record):
        problem = facts_problem(record["operator"], record["facts"]) if "facts" in record else None
        if problem is not None:
            raise InvalidLogError(
                printable(f"{path}:{number}: not a record of a run log: {problem}")
            )
        return
    form = record.get("format", FORMAT) if isinstance(record, dict) else FORMAT
    if form != FORMAT:
        message = f"a run log of format {form}; this dmlconf reads format {FORMAT}"
    else:
        message = f"not a record of a run log: {first_error(checker, record)}"
    raise InvalidLogError(f"{path}:{number}: {message}")


_DEFINITIONS: Final = {
    "header": "header",
    "verdict": "verdictLine",
    "attempt": "attemptLine",
    "footer": "footer",
}


@cache
def _checker(definition: str) -> Checker:
    """Return a checker of a definition of the schema; "" is the whole schema."""
    schema = with_statuses(bundled_schema("run-log"))
    if definition:
        schema = {"$defs": schema["$defs"], "$ref": f"#/$defs/{definition}"}
    return Checker(schema)
