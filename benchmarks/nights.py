"""An invented history of nightly runs, for `benchmarks.history`: the runs, and their rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from sqlalchemy import Connection, func, insert, select

from dmlconf.cases.model import Provenance
from dmlconf.history.tables import case as cases
from dmlconf.history.tables import change, environment, outcome, run, run_operator
from dmlconf.run_log.log import Footer, Header, RunLog
from dmlconf.verdicts.verdict import (
    Execution,
    Identity,
    Judgement,
    Reason,
    ReasonKind,
    Status,
    Verdict,
)

__all__ = ["DRIVERS", "LARGE", "SMALL", "WHOLE", "Night", "Rows", "Size", "nights"]

DRIVERS: Final = 10
FIRST: Final = datetime(2026, 1, 1, 2, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Size:
    """How much the history holds.

    Attributes:
        nights: how many runs.
        cases: of each run.
        events: how many cases begin to fail; as many are mended, as many are flaky, and as many
            have other bits in each night.
        operators: how many operators the cases are of.
        failing: how many cases fail always.
    """

    nights: int
    cases: int
    events: int
    operators: int = 1
    failing: int = 0


SMALL: Final = Size(20, 40, 3)
WHOLE: Final = Size(1_000, 2_000, 30)
LARGE: Final = Size(1_000, 50_000, 20, 170, 500)


@dataclass(frozen=True, slots=True)
class Night:
    """A run.

    Attributes:
        number: which night, from 0.
        size: of the history.
        failing: the cases that fail.
        changed: the cases whose outputs differ in a bit from what they mostly are.
    """

    number: int
    size: Size
    failing: frozenset[int]
    changed: frozenset[int]

    @property
    def driver(self) -> str:
        """The driver's version."""
        return f"{self.number * DRIVERS // self.size.nights}.0"

    @property
    def started(self) -> str:
        """When the run started."""
        return (FIRST + timedelta(days=self.number)).isoformat()

    def log(self) -> RunLog:
        """Return the run's log."""
        verdicts = tuple(self._verdict(number) for number in range(self.size.cases))
        counts = dict.fromkeys(map(str, Status), 0)
        for each in verdicts:
            counts[each.status] += 1
        surroundings = {
            "backend": "directml",
            "version": "1.15.4",
            "adapter": "GPU",
            "driver": self.driver,
            "details": {},
            "platform": "Windows 11",
            "python": "3.12.1",
            "numpy": "2.3.2",
        }
        header = Header(
            dmlconf="0.2.0",
            started=self.started,
            backend="directml",
            against="numpy",
            environment=surroundings,
            paths=("cases",),
            suite_digest="a" * 64,
            catalogue_digest="c" * 64,
            selected=self.size.cases,
            options={},
        )
        return RunLog(header, verdicts, Footer(self.started, 60.0, True, counts))

    def _verdict(self, number: int) -> Verdict:
        fails = number in self.failing
        operator = number % self.size.operators
        name = f"operator-{operator}" if operator else "tile"
        return Verdict(
            Identity(
                f"{name}/matrix/{number}",
                name.upper().replace("-", "_"),
                ("matrix",),
                facts={"InputTensor": "FLOAT32"},
            ),
            Judgement(
                status=Status.FAILED if fails else Status.PASSED,
                expectation=Provenance.DOCUMENTED,
                reason=Reason(ReasonKind.WRONG_VALUES, message(number)) if fails else None,
            ),
            Execution(
                seconds=0.001, output_digests={"OutputTensor": f"{number in self.changed:016x}"}
            ),
        )


def message(number: int) -> str:
    """Return why a case fails."""
    return f"element {number}: 0 is not 1"


def nights(size: Size) -> Iterator[Night]:
    """Yield the runs; `size.events` cases begin to fail, as many are mended, as many are flaky."""
    source = random.Random(40)
    every = source.sample(range(size.cases), 3 * size.events)
    regressed, mended, flaky = (every[kind::3] for kind in range(3))
    others = sorted(set(range(size.cases)) - set(every))
    always = frozenset(source.sample(others, size.failing))
    moments = {case: source.randrange(1, size.nights) for case in (*regressed, *mended)}
    for number in range(size.nights):
        failing = {case for case in regressed if number >= moments[case]}
        failing |= {case for case in mended if number < moments[case]}
        failing |= {case for case in flaky if source.random() < 0.4}
        changed = source.sample(range(size.cases), size.events)
        yield Night(number, size, always | failing, frozenset(changed))


@dataclass
class Rows:
    """Writes nights as the rows that adding their logs leaves, which is quick.

    The night before, with the same driver, must be in the history.
    """

    _ids: dict[int, int] = field(default_factory=dict)
    _bits: dict[int, list[dict[str, int]]] = field(default_factory=dict)

    def write(self, connection: Connection, night: Night, before: Night) -> None:
        """Write a night after the one before."""
        environment_id, earlier = _latest(connection, night.driver)
        if environment_id not in self._bits:
            self._bits[environment_id] = _digests(connection, environment_id)
        bits = self._bits[environment_id]
        columns = [each for each in run.columns if each.name != "id"]
        values = connection.execute(select(*columns).where(run.c.id == earlier)).one()._asdict()
        values["digest"] = values["header_digest"] = f"{night.number:064x}"
        values |= {"started": night.started, "failing": len(night.failing)}
        inserted = connection.execute(insert(run).values(values)).inserted_primary_key
        assert inserted is not None
        connection.execute(
            insert(run_operator).from_select(
                [each.name for each in run_operator.columns],
                select(inserted[0], *list(run_operator.columns)[1:]).where(
                    run_operator.c.run_id == earlier
                ),
            )
        )
        differing = (night.failing ^ before.failing) | (night.changed ^ before.changed)
        outcomes = _outcomes(connection, differing & night.failing)
        if not self._ids:
            named = connection.execute(select(cases.c.identifier, cases.c.id))
            self._ids = {int(name.rpartition("/")[2]): found for name, found in named}
        if differing:
            rows = [
                {
                    "environment_id": environment_id,
                    "case_id": self._ids[number],
                    "run_id": inserted[0],
                    "outcome_id": outcomes.get(message(number), outcomes[""]),
                    **bits[number in night.changed],
                }
                for number in differing
            ]
            connection.execute(insert(change), rows)


def _latest(connection: Connection, driver: str) -> tuple[int, int]:
    """Return the environment of a driver, and its latest run."""
    own = select(environment.c.id).where(environment.c.driver == driver)
    environment_id = connection.execute(own).scalar_one()
    latest = select(func.max(run.c.id)).where(run.c.environment_id == environment_id)
    return environment_id, connection.execute(latest).scalar_one()


def _digests(connection: Connection, environment_id: int) -> list[dict[str, int]]:
    """Return the digests of the usual bits, which nearly all cases have, and of others."""
    counted = (
        select(change.c.outputs, change.c.definition)
        .where(change.c.environment_id == environment_id)
        .group_by(change.c.outputs, change.c.definition)
        .order_by(func.count().desc())
    )
    return [row._asdict() for row in connection.execute(counted)]


def _outcomes(connection: Connection, failing: frozenset[int]) -> dict[str, int]:
    """Return the ids of outcomes by message; those that are missing are inserted."""
    chosen = select(outcome.c.message, outcome.c.id)
    known = dict(connection.execute(chosen).tuples().all())
    new = [message(number) for number in failing if message(number) not in known]
    if not new:
        return known
    fails = {"status": str(Status.FAILED), "reason": str(ReasonKind.WRONG_VALUES)}
    connection.execute(insert(outcome), [{**fails, "message": text} for text in new])
    return dict(connection.execute(chosen).tuples().all())
