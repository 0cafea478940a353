"""Judgements that may need another run: they yield what must run, and get its result."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from dmlconf.backends.circumstances import Exercise
from dmlconf.cases.model import Case

__all__ = ["NeedsRun", "RunOne", "Steps", "answered", "begun", "continued"]

RunOne = Callable[[Any], Any]
"""Runs a case or an exercise alone on the backend under test."""

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class NeedsRun(Generic[_Result]):
    """A judgement that waits for another run.

    Attributes:
        steps: the judgement, which continues with the result.
    """

    item: Case | Exercise
    steps: Steps[_Result]


Steps = Generator[Case | Exercise, Any, _Result]
"""A judgement: it yields what must run, gets each result, and at last returns its own result."""


def begun(steps: Steps[_Result]) -> _Result | NeedsRun[_Result]:
    """Begin a judgement: return its result, or the first run that it needs."""
    try:
        return NeedsRun(next(steps), steps)
    except StopIteration as stop:
        result: _Result = stop.value
        return result


def continued(waiting: NeedsRun[_Result], run_one: RunOne) -> _Result:
    """Run all that a judgement needs, and return its result."""
    item = waiting.item
    while True:
        try:
            item = waiting.steps.send(run_one(item))
        except StopIteration as stop:
            result: _Result = stop.value
            return result


def answered(steps: Steps[_Result], run_one: RunOne) -> _Result:
    """Return the result of a judgement; each run that it needs starts at once."""
    first = begun(steps)
    return continued(first, run_one) if isinstance(first, NeedsRun) else first
