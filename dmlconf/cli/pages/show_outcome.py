"""What `dmlconf show` adds to a case: an expectation from elsewhere, and a backend's outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from dmlconf.backends import registry
from dmlconf.backends.protocol import Breakdown, Outcome, Outputs, Rejection
from dmlconf.cases.loading.loader import Suite
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.cli.pages.grid import grid
from dmlconf.documents.problems import printable
from dmlconf.engine.against import AUTO, expectations, suite_expectations
from dmlconf.engine.session import open_backend, reference
from dmlconf.judging.judge import Against, Recorded, expectation_of, judge
from dmlconf.workers.execution import Limits

__all__ = ["outcome_lines", "with_expectation"]

_NO_BACKEND = registry.BackendName("", "")


def with_expectation(case: Case, against: str, suite_paths: Sequence[Path]) -> Case:
    """Return the case with an expectation: its own or, if it states none, that of `against`.

    Args:
        against: `auto`, or a backend as named on the command line.

    Raises:
        BackendError: there is no such backend.
    """
    return replace(case, expectation=expectation_of(case, _source(against, suite_paths)))


def _source(against: str, suite_paths: Sequence[Path]) -> Against:
    if against == AUTO:
        return suite_expectations(suite_paths)[0]
    asked = reference(against, _NO_BACKEND)
    if registry.parse(against).name != "recording":
        return asked

    def recorded(case: Case) -> Outcome | Recorded | None:
        outcome = asked(case)
        return Recorded(outcome) if isinstance(outcome, Outputs | Rejection) else None

    return recorded


def outcome_lines(
    planned: PlannedCase,
    case: Case,
    name: registry.BackendName,
    against: str,
    suite: Suite,
    suite_paths: Sequence[Path],
    timeout: float,
) -> Iterator[str]:
    """Yield the outcome of a case on a backend, and the verdict on it.

    Args:
        case: the planned case, built.
        against: what gives expected values, as for a run.
        timeout: seconds that the backend may take.

    Raises:
        BackendError: a backend cannot be used.
    """
    backend = open_backend(name, Limits(timeout=timeout))
    try:
        expected = expectations(against, backend, suite, [planned], suite_paths)
        [(_, outcome)] = backend.execute(iter([case]))
        half = backend.capabilities.half_precision
        verdict = judge(case, outcome, expected.against, half_precision=half)
        verdict = backend.faults.waive(case, outcome, verdict)
    finally:
        backend.close()
    yield ""
    yield printable(f"Actual, by {name}")
    if isinstance(outcome, Outputs):
        for tensor, array in outcome.arrays.items():
            yield printable(tensor)
            yield from (f"  {line}" for line in grid(array).split("\n"))
    elif isinstance(outcome, Breakdown):
        yield printable(f"  {outcome.kind}: {outcome.message}")
    else:
        yield printable(f"  rejected with {outcome.hresult} by {outcome.stage}")
    reason = verdict.reason
    yield printable(f"{verdict.status}: {reason.message}" if reason else str(verdict.status))
