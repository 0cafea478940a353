"""Remove old runs from a history, and merge histories."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sqlalchemy import Table, insert, select

from dmlconf.documents.problems import printable
from dmlconf.history.case_sets import packed, set_digest, unpacked
from dmlconf.history.errors import HistoryError
from dmlconf.history.stored_verdicts import (
    Extent,
    Position,
    State,
    remove_parts,
    remove_run,
    remove_unused_rows,
    run_already_there,
    store_states,
)
from dmlconf.history.tables import (
    case,
    case_set,
    change,
    environment,
    operator,
    outcome,
    run,
    run_operator,
    suite,
)
from dmlconf.tensors.datatypes import Array

if TYPE_CHECKING:
    from sqlalchemy import Connection, Row

    from dmlconf.history.database import Database

__all__ = ["copy_runs", "prune"]


def prune(connection: Connection, *, before: str | None = None, keep: int | None = None) -> int:
    """Remove old runs, but never an environment's latest, and return how many were removed.

    Args:
        before: remove runs that started before this time, in the form of `utc_text`; None for no
            such limit.
        keep: also remove all but this many of the latest runs of each environment; None for no
            such limit.

    Raises:
        HistoryError: the history is damaged.
        SQLAlchemyError: the database does not accept the change.
    """
    rows = connection.execute(
        select(run.c.id, run.c.environment_id, run.c.started).order_by(
            run.c.started.desc(), run.c.digest.desc()
        )
    ).all()
    ranks: dict[int, int] = {}
    removed = 0
    for number, environment_id, started in rows:
        rank = ranks[environment_id] = ranks.get(environment_id, 0) + 1
        old = (before is not None and started < before) or (keep is not None and rank > keep)
        if old and rank > 1:
            remove_run(connection, number)
            removed += 1
    if removed:
        remove_unused_rows(connection)
    return removed


def copy_runs(source: Database, target: Database) -> int:
    """Copy the runs that the target lacks or has in part, and return how many.

    The source is read as a whole before the first run is written. If it stayed locked for longer,
    this would wait for ever for another process that copies in the other direction. Each run is
    written in one transaction.

    Raises:
        HistoryError: source and target are the same, one is damaged, or one cannot be used.
    """
    if source.engine.url == target.engine.url:
        raise HistoryError(printable(f"{target.name} cannot be merged with itself"))
    copied = 0
    with source.reading() as reader:
        tables = {
            table.name: {row.id: dict(row._mapping) for row in reader.execute(select(table))}
            for table in (suite, operator, case, environment, outcome)
        }
        sets = {row.id: row.members for row in reader.execute(select(case_set))}
        in_order = select(run).order_by(run.c.started, run.c.digest)
        runs = [_read(source, reader, row) for row in reader.execute(in_order).all()]
    current: dict[int, dict[int, State]] = {}
    for each in runs:
        states = current.setdefault(each.row["environment_id"], {})
        for number, *state in each.changes.tolist():
            states[number] = State(*state)
        try:
            members = unpacked(sets[each.row["case_set_id"]]).tolist()
            own = {number: states[number] for number in members}
        except KeyError as error:
            raise _damaged(source, each.row["id"], "lacks verdicts of its cases") from error
        with target.writing() as writer:
            copied += _copied(writer, tables, each.row, own, each.totals)
    return copied


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of the source.

    Attributes:
        row: its row in the table `run`.
        changes: its rows in the table `change`: case, outcome, outputs and definition.
        totals: its rows in the table `run_operator`.
    """

    row: dict[str, Any]
    changes: Array
    totals: list[dict[str, Any]]


def _read(source: Database, reader: Connection, row: Row[Any]) -> _Run:
    columns = change.c.case_id, change.c.outcome_id, change.c.outputs, change.c.definition
    chosen = change.c.environment_id == row.environment_id, change.c.run_id == row.id
    changes = [tuple(each) for each in reader.execute(select(*columns).where(*chosen))]
    totals = reader.execute(select(run_operator).where(run_operator.c.run_id == row.id))
    try:
        # As Python's integers, they would take several times the memory.
        numbers = np.array(changes, dtype=np.int64)
    except (OverflowError, TypeError, ValueError) as error:
        raise _damaged(source, row.id, "has verdicts that are no numbers") from error
    return _Run(dict(row._mapping), numbers, [dict(each._mapping) for each in totals])


def _damaged(source: Database, number: int, problem: str) -> HistoryError:
    return HistoryError(printable(f"{source.name} is damaged: run #{number} {problem}"))


def _copied(
    writer: Connection,
    tables: Mapping[str, Mapping[int, Mapping[str, Any]]],
    row: dict[str, Any],
    states: Mapping[int, State],
    totals: list[dict[str, Any]],
) -> bool:
    extent = Extent(row["digest"], row["header_digest"], row["cases"], row["complete"])
    if run_already_there(writer, extent) is not None:
        return False
    remove_parts(writer, extent)
    operators = _translated(writer, operator, ("name",), tables["operator"].values())
    needed = [tables["test_case"][number] for number in states]
    cases = _translated(
        writer,
        case,
        ("identifier",),
        [{**each, "operator_id": operators[each["operator_id"]]} for each in needed],
    )
    used = {state.outcome for state in states.values()}
    outcomes = _translated(
        writer, outcome, ("status", "reason", "message"), [tables["outcome"][n] for n in used]
    )
    environments = [tables["environment"][row["environment_id"]]]
    suites = [tables["suite"][row["suite_id"]]]
    members = packed(cases.values())
    sets = [{"id": 0, "digest": set_digest(members), "members": members}]
    own = {
        **row,
        "environment_id": _translated(writer, environment, ("digest",), environments)[
            row["environment_id"]
        ],
        "suite_id": _translated(writer, suite, ("digest",), suites)[row["suite_id"]],
        "case_set_id": _translated(writer, case_set, ("digest",), sets)[0],
    }
    del own["id"]
    inserted = writer.execute(insert(run).values(own)).inserted_primary_key
    assert inserted is not None
    number = int(inserted[0])
    position = Position(own["environment_id"], row["started"], row["digest"])
    copied = {
        cases[n]: State(outcomes[state.outcome], state.outputs, state.definition)
        for n, state in states.items()
    }
    store_states(writer, number, position, copied)
    if totals:
        writer.execute(
            insert(run_operator),
            [
                {**each, "run_id": number, "operator_id": operators[each["operator_id"]]}
                for each in totals
            ],
        )
    return True


def _translated(
    writer: Connection, table: Table, keys: tuple[str, ...], rows: Any
) -> dict[int, int]:
    """Insert rows of the source that the target lacks; return the target's ids by the source's.

    The columns `keys` identify a row in every history.
    """
    listed = list(rows)
    chosen = select(*(table.c[key] for key in keys), table.c.id)

    def known() -> dict[tuple[Any, ...], int]:
        return {tuple(key): number for *key, number in writer.execute(chosen)}

    here = known()
    missing = [row for row in listed if tuple(row[key] for key in keys) not in here]
    if missing:
        new = [{key: value for key, value in row.items() if key != "id"} for row in missing]
        writer.execute(insert(table), new)
        here = known()
    return {row["id"]: here[tuple(row[key] for key in keys)] for row in listed}
