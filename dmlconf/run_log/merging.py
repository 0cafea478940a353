"""Merge the logs of shards, or of several parts of a run, into the log of one run.

Each log is read twice, first to see its cases, then to copy its verdicts, so that memory does not
hold the verdicts of all logs at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Final

from dmlconf.documents.problems import printable
from dmlconf.documents.wording import counted, first_lines
from dmlconf.run_log.header_differences import environment_differences, plan_differences
from dmlconf.run_log.lines import InvalidLogError, log_lines
from dmlconf.run_log.log import Footer, Header, LogWriter, read_log, verdict_of
from dmlconf.verdicts.verdict import Status, Verdict

__all__ = ["MergeError", "Merger"]

_MOST_NAMED: Final = 5
"""The most cases that a message names."""


class MergeError(InvalidLogError):
    """Logs that cannot be merged, such as logs of two runs; the message says why."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One of the logs; its footer is None if its run died."""

    path: Path
    header: Header
    footer: Footer | None


@dataclass(slots=True)
class Merger:
    """Merges logs: `add` each, call `require_one_run`, then `write`, once.

    Attributes:
        owners: the index of the first log in which each case ran; `write` removes cases.
        unreached: for each case that ran in no log, the index of the first log with a verdict
            `not run`; `write` removes cases.
        shared: the cases that ran in several logs, or in one log that was added several times.
        named: whether the environments differ; then a verdict without a worker gets the path of its
            log as worker. `require_one_run` sets this.
        missing: how many planned cases have no verdict; `write` sets this.
        processes: the highest number of a worker process in each log's verdicts, or 0.
    """

    parts: list[_Part] = field(default_factory=list)
    owners: dict[str, int] = field(default_factory=dict)
    unreached: dict[str, int] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    named: bool = False
    missing: int = 0
    processes: list[int] = field(default_factory=list)

    def add(self, path: Path) -> None:
        """Read one of the logs.

        Raises:
            InvalidLogError: the file cannot be read, is not a run log, or contradicts itself.
        """
        number = len(self.parts)
        log = read_log(path, keep=lambda verdict: verdict.judged(figures={}).of_case(facts={}))
        self.parts.append(_Part(path, log.header, log.footer))
        self.processes.append(max((v.execution.last_process for v in log.verdicts), default=0))
        for verdict in log.verdicts:
            case = verdict.case
            if verdict.status is Status.NOT_RUN:
                if case not in self.owners:
                    self.unreached.setdefault(case, number)
            elif case in self.owners:
                self.shared.add(case)
            else:
                self.owners[case] = number
                self.unreached.pop(case, None)

    def require_one_run(self, *, other_environments: bool = False) -> None:
        """Raise `MergeError` if the logs are not of one run.

        Args:
            other_environments: whether their environments may differ.
        """
        first, *others = self.parts
        for part in others:
            different = list(plan_differences(first.header, part.header))
            environments = list(environment_differences(first.header, part.header))
            self.named = self.named or bool(environments)
            hint = ""
            if not other_environments:
                if environments and not different:
                    hint = "\n--other-environments merges them anyway"
                different += environments
            if different:
                lines = [f"  {each.text('there', 'here')}" for each in different]
                message = f"{part.path} is from a different run than {first.path}; these differ:"
                raise MergeError(_printed([message, *lines]) + hint)

    def write(self, stream: IO[str]) -> None:
        """Write the merged log; it has a footer unless verdicts are missing.

        Raises:
            MergeError: logs disagree on a case, or one lacks the places of cases.
            InvalidLogError: a log cannot be read again.
            LogWriteError: the log cannot be written.
        """
        writer, header = LogWriter(stream), self._header()
        writer.header(header)
        summary: Counter[Status] = Counter()
        for verdict, place in self._verdicts():
            summary[verdict.status] += 1
            writer.verdict(verdict, place)
        self.missing = header.selected - summary.total()
        if self.missing > 0:
            return
        footers = [part.footer for part in self.parts if part.footer is not None]
        writer.footer(
            Footer(
                finished=max((footer.finished for footer in footers), default=header.started),
                seconds=round(sum(footer.seconds for footer in footers), 3),
                complete=not summary[Status.NOT_RUN],
                summary={status.value: summary[status] for status in Status},
                cases_digest=header.cases_digest,
            )
        )

    def _header(self) -> Header:
        first = self.parts[0].header
        workers: list[Any] = [worker for part in self.parts for worker in self._workers(part)]
        unique = {worker["name"]: worker for worker in workers}
        return replace(
            first,
            started=min(part.header.started for part in self.parts),
            selected=first.planned,
            cases_digest=first.plan_digest,
            shard=None,
            workers=tuple(unique.values()),
            merged_shards=self._merged_shards(),
        )

    def _merged_shards(self) -> Mapping[str, Any] | None:
        """Return the count of all shards, and the numbers of the present ones.

        None if no shard or no case is missing, or if the logs do not all divide the plan alike.
        """
        shards = [part.header.shard for part in self.parts]
        divisions = set(map(_division, shards))
        cases = len(self.owners) + len(self.unreached)
        if len(divisions) > 1 or None in divisions or cases == self.parts[0].header.planned:
            return None
        numbers = sorted({shard["number"] for shard in shards if shard})
        count = shards[0]["count"] if shards[0] else 0
        return {"count": count, "numbers": numbers} if len(numbers) < count else None

    def divided_differently(self) -> list[str]:
        """Return a message if `missing` is above 0 and the logs divide the plan differently.

        Logs divide it alike if their shards have the same count and are balanced by the same
        durations of cases, or by none.
        """
        divisions = {_division(part.header.shard) for part in self.parts}
        if len(divisions) < 2 or not self.missing:
            return []
        parts = ", ".join(f"{part.path} is {_shard_name(part.header)}" for part in self.parts)
        cases = "1 case is" if self.missing == 1 else f"{self.missing:,} cases are"
        return [
            printable(f"{cases} in none of the logs, which divide the plan differently: {parts}")
        ]

    def ended_early(self) -> list[str]:
        """Return a message for each log of an incomplete run."""
        return [
            printable(f"{part.path}{_shard_text(part.header)} ended early")
            for part in self.parts
            if part.footer is None or not part.footer.complete
        ]

    def _workers(self, part: _Part) -> Sequence[Any]:
        if part.header.workers or not self.named:
            return part.header.workers
        return [{"name": str(part.path), "environment": dict(part.header.environment)}]

    def _verdicts(self) -> Iterator[tuple[Verdict, int]]:
        """Yield each case's verdict and place; cases that did not run come last."""
        overlap = _Overlap(self.shared)
        for number, part in enumerate(self.parts):
            for verdict, place in _logged(part):
                if verdict.status is Status.NOT_RUN:
                    continue
                overlap.see(verdict, part.path)
                if self.owners.get(verdict.case) == number:
                    del self.owners[verdict.case]
                    yield self._named(verdict, part, sum(self.processes[:number])), place
        overlap.require_agreement()
        for number, part in enumerate(self.parts if self.unreached else ()):
            for verdict, place in _logged(part):
                if self.unreached.get(verdict.case) == number:
                    del self.unreached[verdict.case]
                    yield verdict, place

    def _named(self, verdict: Verdict, part: _Part, last: int) -> Verdict:
        verdict = replace(verdict, execution=verdict.execution.with_processes_after(last))
        if verdict.execution.worker is not None or not self.named:
            return verdict
        return verdict.ran(worker=str(part.path))


class _Overlap:
    """The cases that ran in several logs, whose verdicts must agree."""

    def __init__(self, cases: Iterable[str]) -> None:
        self._seen: dict[str, tuple[Verdict, Path] | None] = dict.fromkeys(cases)
        self._disagreements: list[str] = []

    def see(self, verdict: Verdict, path: Path) -> None:
        if verdict.case not in self._seen:
            return
        first = self._seen[verdict.case]
        if first is None:
            self._seen[verdict.case] = verdict, path
        elif _lasting(first[0]) != _lasting(verdict) and first[1] != path:
            pairs = (first, (verdict, path))
            texts = ", ".join(f"{_outcome_text(each)} in {log}" for each, log in pairs)
            self._disagreements.append(f"{verdict.case}: {texts}")

    def require_agreement(self) -> None:
        count = len(self._disagreements)
        if not count:
            return
        lines = first_lines(self._disagreements, _MOST_NAMED)
        raise MergeError(_printed([f"the logs disagree on {counted(count, 'case')}:", *lines]))


def _division(shard: Mapping[str, Any] | None) -> tuple[int, str | None] | None:
    """Return the count of shards and the digest of the durations of cases that balance them.

    The digest is None if no durations balance them. Return None for a whole plan.
    """
    return None if shard is None else (shard["count"], shard.get("balanced_by"))


def _shard_name(header: Header) -> str:
    shard = header.shard
    if shard is None:
        return "the whole plan"
    balanced = "balanced " if "balanced_by" in shard else ""
    return f"{balanced}shard {shard['number']}/{shard['count']}"


def _shard_text(header: Header) -> str:
    return f" (shard {header.shard['number']}/{header.shard['count']})" if header.shard else ""


def _printed(lines: Iterable[str]) -> str:
    return "\n".join(map(printable, lines))


def _logged(part: _Part) -> Iterator[tuple[Verdict, int]]:
    """Yield the verdicts of a log with their places.

    If the run died between a case's attempts and its verdict, the first attempt is the verdict.
    """
    attempts: dict[str, tuple[Verdict, int]] = {}
    for number, record, _ in log_lines(part.path, own=True):
        if record["record"] not in ("verdict", "attempt"):
            continue
        verdict, place = verdict_of(record), record.get("place")
        if place is None:
            message = "the log is from an older dmlconf, which did not write the places of cases"
            raise MergeError(f"{part.path}:{number}: {message}")
        if record["record"] == "attempt":
            attempts.setdefault(verdict.case, (verdict, place))
            continue
        attempts.pop(verdict.case, None)
        yield verdict, place
    yield from attempts.values()


def _lasting(verdict: Verdict) -> Verdict:
    """Return a verdict without what is not compared, such as times and diagnostics."""
    reason = verdict.reason and replace(verdict.reason, diagnostics="")
    variants = {
        label: replace(result, seconds=0.0, dispatch_seconds=())
        for label, result in verdict.judgement.variants.items()
    }
    return (
        verdict.judged(reason=reason, variants=variants, attempts=())
        .ran(seconds=0.0, dispatch_seconds=(), worker=None)
        .of_case(location="")
    )


def _outcome_text(verdict: Verdict) -> str:
    return f"{verdict.status} ({verdict.reason.kind})" if verdict.reason else str(verdict.status)
