"""The task of a worker process that runs cases plainly, then under circumstances."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Final

from dmlconf.backends.circumstances import (
    Circumstance,
    Dispatch,
    Exercise,
    Exercised,
    Exerciser,
    Exercises,
    Inapplicable,
    UnderCircumstance,
)
from dmlconf.backends.protocol import (
    Backend,
    Breakdown,
    BreakdownKind,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.cases.model import Case
from dmlconf.workers.batch import breakdown_of, run_batch
from dmlconf.workers.boundary import checked_outcome

__all__ = ["LONG_DISPATCH_SECONDS", "MOST_DISPATCH_SECONDS", "run_items", "tasks"]

MOST_DISPATCH_SECONDS: Final = 1.0
"""A case does not run under circumstances if each dispatch of its plain run takes longer, since the
circumstance `offset` dispatches it up to 16 times within the time limit of a case.
"""

LONG_DISPATCH_SECONDS: Final = 0.01
"""The same for the circumstance `long`, which submits 100 dispatches at once; Windows may remove a
device whose submission takes over 2 s.
"""

_TOGETHER: Final = 8
"""The most cases that run plainly as one batch."""


def tasks(backend: Backend) -> Callable[[Sequence[Case | Exercise]], Iterator[Outcome | Exercises]]:
    """Return `run_items` for a backend."""
    return partial(run_items, backend)


def run_items(backend: Backend, items: Sequence[Case | Exercise]) -> Iterator[Outcome | Exercises]:
    """Yield an outcome for each case, and `Exercises` or a breakdown for each `Exercise`."""
    for with_circumstances, group in groupby(items, lambda item: isinstance(item, Exercise)):
        together = list(group)
        if not with_circumstances:
            yield from run_batch(backend, [item for item in together if isinstance(item, Case)])
            continue
        exercises = [item for item in together if isinstance(item, Exercise)]
        for start in range(0, len(exercises), _TOGETHER):
            yield from _exercised(backend, exercises[start : start + _TOGETHER])


def _exercised(backend: Backend, items: Sequence[Exercise]) -> Iterator[Outcome | Exercises]:
    plain = list(run_batch(backend, [item.case for item in items]))
    for item, outcome in zip(items, plain, strict=True):
        if isinstance(outcome, Breakdown):
            yield outcome
            continue
        under: dict[Circumstance, UnderCircumstance] = {}
        if isinstance(outcome, Outputs):
            for circumstance in item.circumstances:
                result = _under(backend, item.case, circumstance, outcome)
                under[circumstance] = result
                if isinstance(result, Breakdown):
                    break
        lost = next((each for each in under.values() if _loses_device(each)), None)
        yield lost if isinstance(lost, Breakdown) else Exercises(outcome, under)


def _loses_device(result: UnderCircumstance) -> bool:
    return isinstance(result, Breakdown) and result.device_lost


def _under(
    backend: Backend, case: Case, circumstance: Circumstance, plain: Outputs
) -> UnderCircumstance:
    # The first dispatch may have waited until its shaders were compiled.
    seconds = min(plain.dispatch_seconds, default=0.0)
    is_long = circumstance is Circumstance.LONG
    if seconds > (LONG_DISPATCH_SECONDS if is_long else MOST_DISPATCH_SECONDS):
        return Inapplicable(f"a dispatch takes {seconds:.3g} s")
    exerciser: Exerciser = backend  # type: ignore[assignment]
    try:
        return _checked(exerciser.exercise(case, circumstance), case)
    except Exception as error:
        return breakdown_of(error, case)


def _checked(result: object, case: Case) -> UnderCircumstance:
    """Return the result rebuilt from plain values, as `checked_outcome` does."""
    if isinstance(result, Inapplicable):
        return Inapplicable(str(result.reason))
    if not isinstance(result, Exercised):
        outcome = checked_outcome(result, case)
        if isinstance(outcome, Rejection | Breakdown):
            return outcome
        return Breakdown(BreakdownKind.ERROR, "the backend reported no dispatches")
    dispatches = []
    for each in result.dispatches:
        outcome = checked_outcome(Outputs(each.arrays, 0.0, each.faults), case)
        if not isinstance(outcome, Outputs):
            return Breakdown(BreakdownKind.ERROR, getattr(outcome, "message", "no outputs"))
        dispatches.append(
            Dispatch(
                int(each.variation),
                outcome.arrays,
                outcome.faults,
                int(each.times),
                _shared_buffers(each.in_place, case),
            )
        )
    if not dispatches:
        return Breakdown(BreakdownKind.ERROR, "the backend reported no dispatches")
    whole = checked_outcome(Outputs({}, result.seconds, result.faults), case)
    if not isinstance(whole, Outputs):
        return Breakdown(BreakdownKind.ERROR, getattr(whole, "message", "no outputs"))
    return Exercised(tuple(dispatches), whole.seconds, whole.faults)


def _shared_buffers(in_place: Mapping[str, str] | None, case: Case) -> dict[str, str] | None:
    """Return the pairs of `Dispatch.in_place` that the case has."""
    if in_place is None:
        return None
    inputs = case.input_names()
    return {name: in_place[name] for name in case.outputs() if in_place.get(name) in inputs}
