"""Verdicts as changes: what a run stores, and what its later neighbours then store.

Runs may be added in any order and removed again. A verdict is stored where it differs from that of
the run before in the same environment, so a run that comes between two others, or leaves, changes
what the next run with the same case stores, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, or_, select

from dmlconf.history.inserting import insert_rows
from dmlconf.history.members import holds, unpacked
from dmlconf.history.tables import case, case_set, change, outcome, run, run_operator, suite

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection

__all__ = [
    "Extent",
    "Position",
    "State",
    "remove_parts",
    "remove_run",
    "remove_unused_rows",
    "run_already_there",
    "store_states",
]

_MOST_PARAMETERS = 500
"""Values in one condition: databases limit them."""


@dataclass(frozen=True, slots=True)
class State:
    """The verdict of a case in a run, as far as the history keeps it.

    Attributes:
        outcome: its status, reason and message, by id.
        outputs: a digest of the bits of its outputs.
        definition: a digest of the case as the log describes it.
    """

    outcome: int
    outputs: int
    definition: int


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run stands among those of its environment: by time, and by digest at the same time.

    Attributes:
        environment: its id.
        started: when the run started.
        digest: of the run.
    """

    environment: int
    started: str
    digest: str

    def before(self) -> ColumnElement[bool]:
        """Return the condition on earlier runs."""
        return or_(
            run.c.started < self.started,
            and_(run.c.started == self.started, run.c.digest < self.digest),
        )

    def after(self) -> ColumnElement[bool]:
        """Return the condition on later runs."""
        return or_(
            run.c.started > self.started,
            and_(run.c.started == self.started, run.c.digest > self.digest),
        )


@dataclass(frozen=True, slots=True)
class Extent:
    """Which run a log is of, and how much of it.

    Attributes:
        digest: of its header and verdicts.
        header_digest: of its header, which the logs of a run that was resumed share.
        cases: how many verdicts it has.
        complete: whether every selected case was run.
    """

    digest: str
    header_digest: str
    cases: int
    complete: bool


def run_already_there(connection: Connection, extent: Extent) -> int | None:
    """Return the run that a log adds nothing to: the same, or one that goes on where it ends."""
    same = connection.execute(select(run.c.id).where(run.c.digest == extent.digest)).scalar()
    if same is not None or extent.complete:
        return same
    longer = or_(run.c.complete, run.c.cases > extent.cases)
    return connection.execute(
        select(run.c.id).where(run.c.header_digest == extent.header_digest, longer)
    ).scalar()


def remove_parts(connection: Connection, extent: Extent) -> None:
    """Remove the incomplete runs that a log continues."""
    parts = select(run.c.id).where(
        run.c.header_digest == extent.header_digest, ~run.c.complete, run.c.cases <= extent.cases
    )
    for number in connection.execute(parts).scalars().all():
        remove_run(connection, number)


def store_states(
    connection: Connection, run_id: int, position: Position, states: Mapping[int, State]
) -> dict[int, State]:
    """Store the verdicts of a new run, and return those that took a row, by case.

    Args:
        connection: a writer's.
        run_id: the run, which has its row.
        position: where it stands.
        states: the verdicts, by case.
    """
    meaning = _meanings(connection)
    before = _states_before(connection, position)
    changed = {
        number: state
        for number, state in states.items()
        if not meaning.same(before.get(number), state)
    }
    _insert(connection, position.environment, run_id, changed)
    _settle(
        connection, position, meaning, {n: (before.get(n), state) for n, state in changed.items()}
    )
    return changed


def remove_run(connection: Connection, run_id: int) -> None:
    """Remove a run, as though it had never been added."""
    row = connection.execute(
        select(run.c.environment_id, run.c.started, run.c.digest).where(run.c.id == run_id)
    ).one()
    position = Position(*row)
    before = _states_before(connection, position)
    own = _states_of(connection, position.environment, run_id)
    connection.execute(
        delete(change).where(
            change.c.environment_id == position.environment, change.c.run_id == run_id
        )
    )
    changes = {number: (state, before.get(number)) for number, state in own.items()}
    _settle(connection, position, _meanings(connection), changes)
    connection.execute(delete(run_operator).where(run_operator.c.run_id == run_id))
    connection.execute(delete(run).where(run.c.id == run_id))


def remove_unused_rows(connection: Connection) -> None:
    """Remove the cases, outcomes, suites and sets of cases that no run has any more."""
    for table, user in (
        (outcome, change.c.outcome_id),
        (case, change.c.case_id),
        (case_set, run.c.case_set_id),
        (suite, run.c.suite_id),
    ):
        connection.execute(delete(table).where(table.c.id.not_in(select(user))))


@dataclass(frozen=True, slots=True)
class _Meanings:
    """What outcomes mean apart from their messages, which may differ in a number."""

    by_outcome: Mapping[int, tuple[str, str]]

    def same(self, one: State | None, other: State | None) -> bool:
        """Return whether two verdicts are the same for a history."""
        if one is None or other is None:
            return one is other
        return (
            self.by_outcome[one.outcome] == self.by_outcome[other.outcome]
            and one.outputs == other.outputs
            and one.definition == other.definition
        )


def _meanings(connection: Connection) -> _Meanings:
    rows = connection.execute(select(outcome.c.id, outcome.c.status, outcome.c.reason))
    return _Meanings({number: (status, reason) for number, status, reason in rows})


def _states_before(connection: Connection, position: Position) -> dict[int, State]:
    rows = connection.execute(
        select(change.c.case_id, change.c.outcome_id, change.c.outputs, change.c.definition)
        .join(run, run.c.id == change.c.run_id)
        .where(change.c.environment_id == position.environment, position.before())
        .order_by(run.c.started, run.c.digest)
    )
    return {number: State(*state) for number, *state in rows}


def _states_of(
    connection: Connection, environment: int, run_id: int, cases: Iterable[int] | None = None
) -> dict[int, State]:
    """Return the verdicts that a run stores."""
    chosen = select(change.c.case_id, change.c.outcome_id, change.c.outputs, change.c.definition)
    chosen = chosen.where(change.c.environment_id == environment, change.c.run_id == run_id)
    wanted = None if cases is None else set(cases)
    return {
        number: State(*state)
        for number, *state in connection.execute(chosen)
        if wanted is None or number in wanted
    }


def _insert(
    connection: Connection, environment: int, run_id: int, states: Mapping[int, State]
) -> None:
    rows = [
        {
            "environment_id": environment,
            "case_id": number,
            "run_id": run_id,
            "outcome_id": state.outcome,
            "outputs": state.outputs,
            "definition": state.definition,
        }
        for number, state in states.items()
    ]
    insert_rows(connection, change, rows)


def _settle(
    connection: Connection,
    position: Position,
    meaning: _Meanings,
    changes: Mapping[int, tuple[State | None, State | None]],
) -> None:
    """Change what the next run with each case stores, after a run came or went before it.

    Args:
        connection: a writer's.
        position: where the run stands, or stood.
        meaning: of outcomes.
        changes: by case, the verdict before which the next run stands: until now, and from now on.
    """
    waiting = dict(changes)
    later = connection.execute(
        select(run.c.id, case_set.c.members)
        .join(case_set, case_set.c.id == run.c.case_set_id)
        .where(run.c.environment_id == position.environment, position.after())
        .order_by(run.c.started, run.c.digest)
    ).all()
    for run_id, data in later:
        if not waiting:
            return
        members = unpacked(data)
        reached = {n: both for n, both in waiting.items() if holds(members, n)}
        if not reached:
            continue
        stored = _states_of(connection, position.environment, run_id, reached)
        added: dict[int, State] = {}
        needless: list[int] = []
        for number, (until_now, from_now) in reached.items():
            del waiting[number]
            own = stored.get(number, until_now)
            if number in stored and meaning.same(own, from_now):
                needless.append(number)
            elif number not in stored and own is not None and not meaning.same(own, from_now):
                added[number] = own
        for begin in range(0, len(needless), _MOST_PARAMETERS):
            connection.execute(
                delete(change).where(
                    change.c.environment_id == position.environment,
                    change.c.run_id == run_id,
                    change.c.case_id.in_(needless[begin : begin + _MOST_PARAMETERS]),
                )
            )
        _insert(connection, position.environment, run_id, added)
