"""Add runs to a history from their logs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Table, bindparam, delete, func, insert, select, update

from dmlconf.backends.subject import device_details
from dmlconf.documents.problems import printable
from dmlconf.history.case_sets import packed, set_digest
from dmlconf.history.errors import HistoryError
from dmlconf.history.inserting import insert_rows
from dmlconf.history.stored_verdicts import (
    Extent,
    Position,
    State,
    remove_parts,
    run_already_there,
    store_states,
)
from dmlconf.history.tables import (
    case,
    case_set,
    environment,
    operator,
    outcome,
    run,
    run_operator,
    suite,
)
from dmlconf.history.timestamps import utc_text
from dmlconf.run_log.header_differences import without_folder
from dmlconf.run_log.log import Header, RunLog
from dmlconf.verdicts.record import record_of
from dmlconf.verdicts.verdict import Status, Verdict

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["Addition", "add"]

_LONGEST_MESSAGE: Final = 500
"""The most characters of a failure's message that a history keeps; the run log has all of it."""


@dataclass(frozen=True, slots=True)
class Addition:
    """The result of adding a log.

    Attributes:
        run: the id of the run.
        new: whether the run was added, perhaps in place of a stored part of it.
        changes: how many of the run's verdicts got a row in the table `change`.
    """

    run: int
    new: bool
    changes: int


def add(connection: Connection, log: RunLog) -> Addition:
    """Add a run, unless the history has all of it; a stored part of the run is replaced.

    Cases that were not run are left out.

    Raises:
        HistoryError: the log's `started` is not a date of ISO 8601, or the history is damaged.
        SQLAlchemyError: the database does not accept the run.
    """
    log = replace(log, verdicts=tuple(v for v in log.verdicts if v.status is not Status.NOT_RUN))
    started = _start(log.header)
    header_digest = _digest(record_of(log.header))
    extent = Extent(_run_digest(log), header_digest, len(log.verdicts), log.complete)
    known = run_already_there(connection, extent)
    if known is not None:
        return Addition(known, new=False, changes=0)
    remove_parts(connection, extent)
    operators = _ids(connection, operator, "name", {v.operator: {} for v in log.verdicts})
    cases = _cases(connection, log.verdicts, operators)
    members = packed(cases.values())
    sets = {set_digest(members): {"members": members}}
    environment_id = _only_id(_ids(connection, environment, "digest", _environment(log.header)))
    row = {
        "digest": extent.digest,
        "header_digest": extent.header_digest,
        "started": started,
        "seconds": log.footer.seconds if log.footer else 0.0,
        "environment_id": environment_id,
        "suite_id": _only_id(_ids(connection, suite, "digest", {log.header.suite_digest: {}})),
        "case_set_id": _only_id(_ids(connection, case_set, "digest", sets)),
        "dmlconf": log.header.dmlconf,
        "catalogue_digest": log.header.catalogue_digest,
        "against": without_folder(log.header.against),
        "complete": extent.complete,
        "shard": "" if log.header.shard is None else _shard(log.header.shard),
        "cases": extent.cases,
        "failing": sum(verdict.status.fails_run for verdict in log.verdicts),
    }
    inserted = connection.execute(insert(run).values(row)).inserted_primary_key
    assert inserted is not None
    run_id = int(inserted[0])
    newest = connection.execute(select(func.max(outcome.c.id))).scalar() or 0
    outcomes = _outcomes(connection, log.verdicts)
    states = {
        cases[verdict.case]: State(
            outcomes[_outcome(verdict)], _outputs(verdict), _definition(verdict)
        )
        for verdict in log.verdicts
    }
    position = Position(environment_id, started, extent.digest)
    changes = store_states(connection, run_id, position, states)
    # A verdict that differs only in its message gets no row, and its new outcome is deleted: such
    # messages of nightly runs would fill the database.
    used = {state.outcome for state in changes.values()}
    unused = [number for number in outcomes.values() if number > newest and number not in used]
    if unused:
        chosen = outcome.c.id == bindparam("unused")
        connection.execute(delete(outcome).where(chosen), [{"unused": n} for n in unused])
    _store_totals(connection, run_id, log.verdicts, operators)
    return Addition(run_id, new=True, changes=len(changes))


def _start(header: Header) -> str:
    try:
        return utc_text(header.started)
    except ValueError as error:
        message = f"the run's `started` is not a date of ISO 8601, but {header.started!r}"
        raise HistoryError(printable(message)) from error


def _run_digest(log: RunLog) -> str:
    """Return a digest of the header, and of each verdict's case, status, seconds and outputs."""
    digest = sha256(_digest(record_of(log.header)).encode())
    for verdict in log.verdicts:
        line = (
            verdict.case,
            verdict.status,
            verdict.seconds,
            sorted(verdict.execution.output_digests.items()),
        )
        digest.update(repr(line).encode())
    return digest.hexdigest()


def _digest(data: Any) -> str:
    text = json.dumps(data, sort_keys=True, default=str, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def _short_digest(data: Any) -> int:
    """Return a digest of 64 bits as a signed integer; databases have no unsigned ones."""
    return int.from_bytes(bytes.fromhex(_digest(data))[:8], "big", signed=True)


def _outputs(verdict: Verdict) -> int:
    digests = verdict.execution.output_digests
    return _short_digest(dict(digests)) if digests else 0


def _definition(verdict: Verdict) -> int:
    own = verdict.identity
    if not own.facts:
        return 0  # An older version wrote the log.
    expectation = verdict.judgement.expectation
    return _short_digest((own.facts, expectation, own.origin, own.files, own.disputes))


def _shard(shard: Mapping[str, Any]) -> str:
    return f"{shard['number']}/{shard['count']}"


def _environment(header: Header) -> dict[str, dict[str, str]]:
    facts = header.environment
    machine = {
        "platform": facts.get("platform"),
        "python": facts.get("python"),
        "numpy": facts.get("numpy"),
        **device_details(facts.get("details") or {}),
    }
    row = {
        "backend": without_folder(header.backend),
        "adapter": str(facts.get("adapter") or ""),
        "driver": str(facts.get("driver") or ""),
        "version": str(facts.get("version") or ""),
        "machine": json.dumps(machine, sort_keys=True, default=str),
    }
    return {_digest(row): row}


def _only_id(ids: Mapping[str, int]) -> int:
    [number] = ids.values()
    return number


def _ids(
    connection: Connection, table: Table, key: str, rows: Mapping[str, Mapping[str, Any]]
) -> dict[str, int]:
    """Return the ids of rows by the values of the column `key`, and insert missing rows."""
    column = table.c[key]
    chosen = select(column, table.c.id)
    if len(rows) == 1:
        chosen = chosen.where(column == next(iter(rows)))
    known = {name: number for name, number in connection.execute(chosen) if name in rows}
    new = [{key: name, **row} for name, row in rows.items() if name not in known]
    if new:
        insert_rows(connection, table, new)
        known = {name: number for name, number in connection.execute(chosen) if name in rows}
    return known


def _cases(
    connection: Connection, verdicts: Iterable[Verdict], operators: Mapping[str, int]
) -> dict[str, int]:
    tags = {verdict.case: json.dumps(verdict.tags) for verdict in verdicts}
    rows = {
        verdict.case: {"operator_id": operators[verdict.operator], "tags": tags[verdict.case]}
        for verdict in verdicts
    }
    known = _ids(connection, case, "identifier", rows)
    rows_now = connection.execute(select(case.c.identifier, case.c.tags))
    stored = {row.identifier: row.tags for row in rows_now}
    for identifier, number in known.items():
        if stored[identifier] != tags[identifier]:
            values = {"tags": tags[identifier]}
            connection.execute(update(case).where(case.c.id == number).values(values))
    return known


def _outcome(verdict: Verdict) -> tuple[str, str, str]:
    reason = verdict.reason
    if reason is None:
        return str(verdict.status), "", ""
    message = reason.message if verdict.status.fails_run else ""
    return str(verdict.status), str(reason.kind), message.replace("\0", "")[:_LONGEST_MESSAGE]


def _outcomes(
    connection: Connection, verdicts: Iterable[Verdict]
) -> dict[tuple[str, str, str], int]:
    chosen = select(outcome.c.status, outcome.c.reason, outcome.c.message, outcome.c.id)
    wanted = dict.fromkeys(map(_outcome, verdicts))
    known = {(s, r, m): number for s, r, m, number in connection.execute(chosen)}
    new = [
        {"status": status, "reason": reason, "message": message}
        for status, reason, message in wanted
        if (status, reason, message) not in known
    ]
    if new:
        connection.execute(insert(outcome), new)
        known = {(s, r, m): number for s, r, m, number in connection.execute(chosen)}
    return known


def _store_totals(
    connection: Connection,
    run_id: int,
    verdicts: Iterable[Verdict],
    operators: Mapping[str, int],
) -> None:
    totals: dict[int, dict[str, Any]] = {}
    for verdict in verdicts:
        number = operators[verdict.operator]
        row = totals.setdefault(
            number,
            {"run_id": run_id, "operator_id": number, "cases": 0, "failing": 0, "seconds": 0.0},
        )
        row["cases"] += 1
        row["failing"] += verdict.status.fails_run
        row["seconds"] += verdict.seconds
    if totals:
        connection.execute(insert(run_operator), list(totals.values()))
