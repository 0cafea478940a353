"""Read the runs of a history in their order, and the verdicts on a case in these runs.

All runs of one backend on one adapter are a line.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING

from sqlalchemy import select

from dmlconf.documents.problems import printable
from dmlconf.history.case_sets import Members, holds, unpacked
from dmlconf.history.database import parts_of
from dmlconf.history.errors import HistoryError
from dmlconf.history.tables import case, case_set, change, environment, outcome, run, suite
from dmlconf.history.tables import operator as operators
from dmlconf.verdicts.status import Status

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Environment", "Line", "RunRow", "Timeline", "Transition", "VerdictAt", "verdicts_along"]


@dataclass(frozen=True, slots=True)
class Environment:
    """The software and the device of one or more runs; `machine` is JSON, as in the table."""

    id: int
    backend: str
    adapter: str
    driver: str
    version: str
    machine: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of a history.

    Attributes:
        digest: a digest that no other run has.
        started: when the run started, as text of ISO 8601 in UTC.
        seconds: how long it took, as the log's footer says; 0 if the log has none.
        suite: the digest of all case files.
        case_set: the id of the stored set of the run's cases.
        dmlconf: the version of dmlconf.
        catalogue: the digest of the catalogue.
        against: the source of expected values that cases do not state, such as `numpy`.
        complete: whether every selected case was run.
        shard: which part of a plan was run, such as `1/4`; empty for the whole plan.
        cases: how many cases had a verdict other than `not run`.
        failing: how many cases failed.
    """

    id: int
    digest: str
    started: str
    seconds: float
    environment: Environment
    suite: str
    case_set: int
    dmlconf: str
    catalogue: str
    against: str
    complete: bool
    shard: str
    cases: int
    failing: int

    @property
    def whole(self) -> bool:
        """Whether the run reached every case of its whole plan."""
        return self.complete and not self.shard


@dataclass(frozen=True, slots=True)
class VerdictAt:
    """A verdict as the history stores it.

    Attributes:
        reason: the kind of the reason; empty if there is none.
        message: the first 500 characters of a failure's message; empty for other verdicts.
        outputs: a digest of the bits of all outputs; 0 if there are none.
        definition: a digest of the case as the log describes it; 0 if the log does not.
    """

    status: Status
    reason: str
    message: str
    outputs: int
    definition: int

    @property
    def fails(self) -> bool:
        """Whether the verdict fails the run."""
        return self.status.fails_run

    @property
    def text(self) -> str:
        """The status and, if there is one, the reason: `failed (wrong values)`."""
        return f"{self.status} ({self.reason})" if self.reason else str(self.status)


def _status(text: str) -> Status:
    try:
        return Status(text)
    except ValueError as error:
        message = f"the history has the status {text}, which a newer dmlconf may have added"
        raise HistoryError(printable(message)) from error


@dataclass(frozen=True, slots=True)
class Transition:
    """The first verdict on a case in a line, or a change between two runs that both had the case.

    Attributes:
        before: the earlier verdict; None if `after` is the first verdict on the case in the line.
        last: the last run before `first` that had the case; None if there is no earlier verdict.
        first: the first run with the later verdict.
        causes: what changed between the runs `last` and `first`, as `causes.causes` returns it;
            empty for the first verdict.
    """

    case: str
    operator: str
    before: VerdictAt | None
    after: VerdictAt
    last: RunRow | None
    first: RunRow
    causes: tuple[str, ...]

    @property
    def regresses(self) -> bool:
        """Whether the case fails after the change and did not before it."""
        return self.before is not None and self.after.fails and not self.before.fails

    @property
    def mends(self) -> bool:
        """Whether the case failed before the change and does not fail after it."""
        return self.before is not None and self.before.fails and not self.after.fails

    @property
    def flips(self) -> bool:
        """Whether the case begins or ceases to fail."""
        return self.regresses or self.mends


@dataclass(frozen=True)
class Line:
    """The runs of one backend on one adapter, the earliest first.

    Attributes:
        backend: the backend, as named on the command line but without folders.
        adapter: the name of the adapter; empty if the backend has none.
    """

    backend: str
    adapter: str
    runs: tuple[RunRow, ...]

    @property
    def name(self) -> str:
        """The name of the line for people, such as `directml on NVIDIA T4`."""
        return f"{self.backend} on {self.adapter}" if self.adapter else self.backend

    @cached_property
    def indices(self) -> Mapping[int, int]:
        """The index of each run, by its id."""
        return {each.id: index for index, each in enumerate(self.runs)}

    @cached_property
    def indices_by_set(self) -> Mapping[int, Sequence[int]]:
        """The indices of the runs that had the same cases, by the id of the set of cases."""
        indices: dict[int, list[int]] = {}
        for index, each in enumerate(self.runs):
            indices.setdefault(each.case_set, []).append(index)
        return indices

    @cached_property
    def switches(self) -> Sequence[int]:
        """The index 0, and each index at which the environment changes."""
        ids = [each.environment.id for each in self.runs]
        return [at for at in range(len(ids)) if at == 0 or ids[at] != ids[at - 1]]


@dataclass
class Timeline:
    """The runs and verdicts of a history, read through one connection."""

    connection: Connection
    _sets: dict[int, Members] = field(default_factory=dict)

    @cached_property
    def runs(self) -> tuple[RunRow, ...]:
        """All runs, the earliest first."""
        environments = {
            row.id: Environment(*row)
            for row in self.connection.execute(
                select(environment).with_only_columns(
                    environment.c.id,
                    environment.c.backend,
                    environment.c.adapter,
                    environment.c.driver,
                    environment.c.version,
                    environment.c.machine,
                )
            )
        }
        rows = self.connection.execute(
            select(
                run.c.id,
                run.c.digest,
                run.c.started,
                run.c.seconds,
                run.c.environment_id,
                suite.c.digest,
                run.c.case_set_id,
                run.c.dmlconf,
                run.c.catalogue_digest,
                run.c.against,
                run.c.complete,
                run.c.shard,
                run.c.cases,
                run.c.failing,
            )
            .join(suite, suite.c.id == run.c.suite_id)
            .order_by(run.c.started, run.c.digest)
        )
        return tuple(
            RunRow(number, digest, started, seconds, environments[environment_id], *rest)
            for number, digest, started, seconds, environment_id, *rest in rows
        )

    @cached_property
    def lines(self) -> tuple[Line, ...]:
        """The runs of each backend on each adapter, sorted by these names."""
        by_name: dict[tuple[str, str], list[RunRow]] = {}
        for each in self.runs:
            key = each.environment.backend, each.environment.adapter
            by_name.setdefault(key, []).append(each)
        return tuple(Line(*key, tuple(by_name[key])) for key in sorted(by_name))

    def has(self, each: RunRow, number: int) -> bool:
        """Return whether a run had the case with this id.

        Raises:
            HistoryError: a set of cases is damaged.
        """
        return self.set_has(each.case_set, number)

    def set_has(self, set_id: int, number: int) -> bool:
        """Return whether a stored set of cases has the case with this id.

        Raises:
            HistoryError: the set is damaged.
        """
        if set_id not in self._sets:
            data = self.connection.execute(
                select(case_set.c.members).where(case_set.c.id == set_id)
            ).scalar_one()
            self._sets[set_id] = unpacked(data)
        return holds(self._sets[set_id], number)

    def cases(self, among: Collection[int] | None = None) -> list[tuple[int, str, str, str]]:
        """Return the id, identifier, operator and tags (as JSON) of cases, sorted by identifier.

        Args:
            among: the ids of these cases; None for all cases.
        """
        query = select(case.c.id, case.c.identifier, operators.c.name, case.c.tags).join(
            operators, operators.c.id == case.c.operator_id
        )
        parts = [query]
        if among is not None:
            parts = [query.where(case.c.id.in_(part)) for part in parts_of(among)]
        rows = [tuple(row) for part in parts for row in self.connection.execute(part).all()]
        return sorted(rows, key=itemgetter(1))

    def failing_cases(self) -> set[int]:
        """Return the ids of the cases that failed in any run of the history."""
        failing = [str(status) for status in Status if status.fails_run]
        numbers = (
            self.connection.execute(select(outcome.c.id).where(outcome.c.status.in_(failing)))
            .scalars()
            .all()
        )
        cases: set[int] = set()
        for part in parts_of(numbers):
            cases.update(
                self.connection.execute(
                    select(change.c.case_id).where(change.c.outcome_id.in_(part)).distinct()
                ).scalars()
            )
        return cases

    def changes(self, numbers: Iterable[int]) -> dict[int, dict[int, list[tuple[int, VerdictAt]]]]:
        """Return pairs of a run's id and a stored verdict, by the ids of case and environment.

        Raises:
            HistoryError: a newer dmlconf has added a status.
        """
        outcomes = {
            number: (_status(status), reason, message)
            for number, status, reason, message in self.connection.execute(
                select(outcome.c.id, outcome.c.status, outcome.c.reason, outcome.c.message)
            )
        }
        # With all environments named, the database can use the primary key, which begins with them.
        environments = self.connection.execute(select(environment.c.id)).scalars().all()
        changes: dict[int, dict[int, list[tuple[int, VerdictAt]]]] = {}
        for part in parts_of(numbers):
            rows = self.connection.execute(
                select(
                    change.c.case_id,
                    change.c.environment_id,
                    change.c.run_id,
                    change.c.outcome_id,
                    change.c.outputs,
                    change.c.definition,
                ).where(change.c.environment_id.in_(environments), change.c.case_id.in_(part))
            )
            for number, environment_id, run_id, verdict, outputs, definition in rows.all():
                entry = run_id, VerdictAt(*outcomes[verdict], outputs, definition)
                changes.setdefault(number, {}).setdefault(environment_id, []).append(entry)
        return changes


def verdicts_along(
    timeline: Timeline,
    line: Line,
    number: int,
    changes: Mapping[int, Sequence[tuple[int, VerdictAt]]],
) -> Iterator[tuple[int, VerdictAt]]:
    """Yield the verdicts on a case in a line, each with the index of the first run that has it.

    Where the environment changes, the same verdict may come again.

    Args:
        number: the id of the case.
        changes: what `Timeline.changes` returns for the case.

    Raises:
        HistoryError: a set of cases is damaged.
    """
    by_environment: dict[int, tuple[list[int], list[VerdictAt]]] = {}
    indices: set[int] = set()
    for environment_id, entries in changes.items():
        own = sorted(
            ((line.indices[i], verdict) for i, verdict in entries if i in line.indices),
            key=lambda entry: entry[0],
        )
        if own:
            at = [index for index, _ in own]
            by_environment[environment_id] = at, [verdict for _, verdict in own]
            indices.update(at)
    if not by_environment:
        return
    switches = line.switches
    for begin, end in zip(switches, [*switches[1:], len(line.runs)], strict=True):
        if line.runs[begin].environment.id in by_environment:
            first = next((p for p in range(begin, end) if timeline.has(line.runs[p], number)), None)
            if first is not None:
                indices.add(first)
    for index in sorted(indices):
        stored, verdicts = by_environment[line.runs[index].environment.id]
        reached = bisect_right(stored, index)
        if reached:
            yield index, verdicts[reached - 1]
