"""What `dmlconf show` adds to a case: an expectation, and a backend's outcome."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from dmlconf.backends import registry
from dmlconf.backends.protocol import Breakdown, Declined, Outcome, Outputs, Rejection
from dmlconf.cases.loading.loader import Suite
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.cli.pages.grid import grid
from dmlconf.documents.problems import printable
from dmlconf.engine.against import AUTO, expectations, suite_expectations
from dmlconf.engine.session import conclusion_for, open_backend, reference
from dmlconf.judging.conclusion import alone_on
from dmlconf.judging.judge import (
    Against,
    Recorded,
    expectation_of,
    not_asked,
    unsupported_reason,
)
from dmlconf.judging.needs_run import answered
from dmlconf.workers.execution import Limits

__all__ = ["outcome_lines", "with_expectation"]

_NO_BACKEND = registry.BackendName("", "")
"""Stands for the tested backend when none runs, so any backend may give expected values."""


def with_expectation(case: Case, against: str, suite_paths: Sequence[Path]) -> Case:
    """Return the case with an expectation: its own and, for other outputs, that of `against`.

    The case has none if neither gives one.

    Args:
        against: `auto`, or a backend as named on the command line.

    Raises:
        BackendError: there is no such backend, or it cannot be used.
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
        timeout: seconds that the case may take in a worker process.

    Raises:
        BackendError: a backend or a recording cannot be used.
        InvalidFilesError: a case of a matrix cannot be built.
    """
    with closing(open_backend(name, Limits(timeout=timeout))) as backend:
        expected = expectations(against, backend, suite, [planned], suite_paths)
        unsupported = unsupported_reason(case, backend.capabilities)
        if unsupported is None:
            [(ran, outcome)] = backend.execute(iter([case]))
            conclusion = conclusion_for(backend, expected.against)
            verdict = answered(conclusion.of(ran, outcome), alone_on(backend.execute))
        else:
            outcome, verdict = Declined(unsupported.message), not_asked(case, unsupported)
    yield ""
    yield printable(f"Actual, by {name}")
    if isinstance(outcome, Declined):
        yield "  not run" if unsupported else "  not expressible"
    elif isinstance(outcome, Outputs):
        for tensor, array in outcome.arrays.items():
            yield printable(tensor)
            yield from (f"  {line}" for line in grid(array).split("\n"))
    elif isinstance(outcome, Breakdown):
        yield printable(f"  {outcome.kind}: {outcome.message}")
    else:
        yield printable(f"  rejected with {outcome.hresult} by {outcome.stage}")
    reason = verdict.reason
    yield printable(f"{verdict.status}: {reason.message}" if reason else str(verdict.status))
