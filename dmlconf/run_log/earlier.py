"""Read the log of an earlier run that is to be resumed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

from dmlconf.documents.files import UnreadableFileError, open_regular
from dmlconf.documents.problems import printable
from dmlconf.limits import LONGEST_LOG_LINE
from dmlconf.run_log.consistency import LoggedVerdict, contradiction, contradiction_error
from dmlconf.run_log.lines import InvalidLogError, LogLine, log_lines, require_short
from dmlconf.run_log.log import Footer, Header, footer_of, header_of, verdict_of
from dmlconf.verdicts.verdict import Status, Verdict

__all__ = ["EarlierRun", "read_earlier"]

_BEGINNING: Final = b'{"record":"header"'
"""The first bytes of every log that `LogWriter` writes."""


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """What the log of an earlier run holds.

    Attributes:
        places: the place of each case with a verdict other than `not run`, by identifier. In a log
            without places, line numbers replace them.
        summary: how many cases of `places` have each status.
        attempts: the attempts at cases that are not in `places`, by case.
        footer: None if the run died.
        end: how many bytes of the log to keep; verdicts `not run`, the footer and a damaged end
            follow.
        size: how many bytes the log has.
        processes: the highest number of a worker process in kept verdicts and `attempts`, or 0.
    """

    header: Header
    places: Mapping[str, int]
    summary: Mapping[Status, int]
    attempts: Mapping[str, tuple[Verdict, ...]] = field(default_factory=dict)
    footer: Footer | None = None
    end: int = 0
    size: int = 0
    processes: int = 0

    @property
    def complete(self) -> bool:
        """Whether there is a footer that says that every selected case was run."""
        return self.footer is not None and self.footer.complete

    @property
    def failures(self) -> int:
        """How many cases of `places` have a verdict that fails the run."""
        return sum(count for status, count in self.summary.items() if status.fails_run)


def read_earlier(path: Path) -> EarlierRun | None:
    """Return what the log of an earlier run holds; None if its first line is incomplete.

    Verdicts `not run` are left out.

    Raises:
        InvalidLogError: the file cannot be read, is not a run log, contradicts itself, or its
            verdicts `not run` are not the last ones.
    """
    size = _size(path)
    if not _has_header(path):
        return None
    lines = log_lines(path, damaged_end=True)
    first = next(lines)
    header, reader = header_of(first.record), _Reader(path, first.end)
    verdicts = list(reader.verdicts(lines))
    problem = contradiction(header.selected, verdicts, None, header.planned)
    if problem is not None:
        raise contradiction_error(path, problem)
    kept = [each for each in verdicts if each.verdict.status is not Status.NOT_RUN]
    places = {each.verdict.case: each.line if each.place is None else each.place for each in kept}
    summary = Counter({each.verdict.case: each.verdict.status for each in kept}.values())
    attempts = {case: tuple(own) for case, own in reader.attempts.items() if case not in places}
    every = [*(each.verdict for each in kept), *chain.from_iterable(attempts.values())]
    processes = max((each.execution.last_process for each in every), default=0)
    return EarlierRun(header, places, summary, attempts, reader.footer, reader.end, size, processes)


class _Reader:
    def __init__(self, path: Path, end: int) -> None:
        self._path = path
        self.attempts: dict[str, list[Verdict]] = {}
        self.footer: Footer | None = None
        self.end = end

    def verdicts(self, lines: Iterator[LogLine]) -> Iterator[LoggedVerdict]:
        """Yield the verdicts without figures and facts, which only reports need."""
        unreached = False
        for number, record, end in lines:
            kind = record["record"]
            if kind == "footer":
                self.footer = footer_of(record)
                continue
            verdict = verdict_of(record)
            if kind == "attempt":
                self.attempts.setdefault(verdict.case, []).append(verdict)
            else:
                yield LoggedVerdict(
                    number, record.get("place"), verdict.judged(figures={}).of_case(facts={})
                )
            if verdict.status is Status.NOT_RUN:
                unreached = True
                continue
            if unreached:
                message = (
                    "a verdict follows one that is `not run`; `dmlconf merge` puts it in order"
                )
                raise InvalidLogError(f"{self._path}:{number}: {message}")
            self.end = end


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise InvalidLogError(f"{path} cannot be read: {error.strerror}") from error


def _has_header(path: Path) -> bool:
    try:
        with open_regular(path) as stream:
            line = stream.readline(LONGEST_LOG_LINE + 1)
    except UnreadableFileError as error:
        raise InvalidLogError(printable(f"{path}: {error}")) from error
    require_short(path, 1, line)
    if line.endswith(b"\n"):
        return True
    written = line.rstrip(b"\0")
    if written[: len(_BEGINNING)] != _BEGINNING[: len(written)]:
        message = "not a dmlconf run log: its first line is not a header"
        raise InvalidLogError(printable(f"{path}:1: {message}"))
    return False
