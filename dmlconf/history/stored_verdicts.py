"""Store and remove the verdicts of a run in a history, which keeps only verdicts that changed.

A verdict has a row only if it is the first on its case in the environment, or differs from the one
before in more than the message. If a run is added or removed, later verdicts may gain or lose rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, or_, select, true

from dmlconf.history.case_sets import holds, unpacked
from dmlconf.history.database import parts_of
from dmlconf.history.inserting import insert_rows
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


@dataclass(frozen=True, slots=True)
class State:
    """The verdict of a case in a run, as the table `change` stores it."""

    outcome: int
    outputs: int
    definition: int


@dataclass(frozen=True, slots=True)
class Position:
    """Where a run stands among the runs of its environment, by start and then by digest."""

    environment: int
    started: str
    digest: str

    def before(self) -> ColumnElement[bool]:
        """Return a condition of SQL that the earlier runs of any environment meet."""
        return or_(
            run.c.started < self.started,
            and_(run.c.started == self.started, run.c.digest < self.digest),
        )

    def after(self) -> ColumnElement[bool]:
        """Return a condition of SQL that the later runs of any environment meet."""
        return or_(
            run.c.started > self.started,
            and_(run.c.started == self.started, run.c.digest > self.digest),
        )


@dataclass(frozen=True, slots=True)
class Extent:
    """Which run a log belongs to, and how much of that run it has.

    Attributes:
        digest: the digest of the log's header, and of each verdict's case, status, seconds and
            outputs.
        header_digest: the digest of the header alone, which all logs of a resumed run share.
        cases: how many verdicts the log has.
        complete: whether every selected case was run.
    """

    digest: str
    header_digest: str
    cases: int
    complete: bool


def run_already_there(connection: Connection, extent: Extent) -> int | None:
    """Return the id of a stored run that has all of a log; None if there is none.

    A run has all of a log if it has the log's digest and, for a complete log, is complete. A run
    with the same header has all of an incomplete log if it is complete or has more cases.
    """
    as_complete = run.c.complete if extent.complete else true()
    equal = select(run.c.id).where(run.c.digest == extent.digest, as_complete)
    same = connection.execute(equal).scalar()
    if same is not None or extent.complete:
        return same
    longer = or_(run.c.complete, run.c.cases > extent.cases)
    return connection.execute(
        select(run.c.id).where(run.c.header_digest == extent.header_digest, longer)
    ).scalar()


def remove_parts(connection: Connection, extent: Extent) -> None:
    """Remove the incomplete runs with a log's header, and with no more verdicts than the log.

    Raises:
        HistoryError: the history is damaged.
    """
    parts = select(run.c.id).where(
        run.c.header_digest == extent.header_digest, ~run.c.complete, run.c.cases <= extent.cases
    )
    for number in connection.execute(parts).scalars().all():
        remove_run(connection, number)


def store_states(
    connection: Connection, run_id: int, position: Position, states: Mapping[int, State]
) -> dict[int, State]:
    """Store those verdicts of a new run that need a row; return them by case.

    The table `run` must already have the run.

    Raises:
        HistoryError: the history is damaged.
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
    """Remove a run, its verdicts and totals, but nothing that other runs may use, such as cases.

    Raises:
        HistoryError: the history is damaged.
    """
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
    """Remove the cases, outcomes, suites and sets of cases that no stored run or verdict names."""
    for table, user in (
        (outcome, change.c.outcome_id),
        (case, change.c.case_id),
        (case_set, run.c.case_set_id),
        (suite, run.c.suite_id),
    ):
        connection.execute(delete(table).where(table.c.id.not_in(select(user))))


@dataclass(frozen=True, slots=True)
class _Meanings:
    """The status and the reason of each outcome, by its id, to compare verdicts."""

    by_outcome: Mapping[int, tuple[str, str]]

    def same(self, one: State | None, other: State | None) -> bool:
        """Return whether two verdicts, or None for no verdict, differ at most in their messages."""
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
    """Return the stored verdicts of a run, of these cases or, if None, of all."""
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
    """Add and delete rows of later runs after a run before them was added or removed.

    Args:
        changes: for each case, the verdict that came before the later runs until now, and the one
            that comes before them from now on; None for no verdict.
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
        for part in parts_of(needless):
            connection.execute(
                delete(change).where(
                    change.c.environment_id == position.environment,
                    change.c.run_id == run_id,
                    change.c.case_id.in_(part),
                )
            )
        _insert(connection, position.environment, run_id, added)
