"""Run a batch of cases on a backend, and turn the exceptions that it raises into outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from dmlconf.backends.errors import described
from dmlconf.backends.protocol import Backend, Breakdown, BreakdownKind, Outcome
from dmlconf.cases.model import Case
from dmlconf.workers.boundary import checked_outcome

__all__ = ["breakdown_of", "run_batch"]

_LONGEST_TRACE: Final = 8192
"""How many of the last characters of a traceback are kept."""


def run_batch(backend: Backend, cases: Sequence[Case]) -> Iterator[Outcome]:
    """Yield one outcome for each case, whatever exceptions the backend raises.

    After an exception or too few outcomes, the cases without an outcome run again, one at a time. A
    case that raises an exception alone, or has no outcome alone, breaks down. After too many
    outcomes, the batch's last case breaks down.
    """
    done, together = 0, len(cases)
    while done < len(cases):
        batch = cases[done : done + together]
        try:
            for outcome in _as_many(backend.run(batch), len(batch)):
                yield checked_outcome(outcome, cases[done])
                done += 1
        except Exception as error:
            if len(batch) > 1 and not isinstance(error, _TooManyError):
                together = 1
                continue
            yield breakdown_of(error, cases[done])
            done += 1


class _TooFewError(Exception):
    """A backend returned fewer outcomes than cases."""


class _TooManyError(Exception):
    """A backend returned more outcomes than cases."""


def _as_many(outcomes: Iterable[Outcome], count: int) -> Iterator[Outcome]:
    """Yield the outcomes, the last one only if no other follows."""
    iterator = iter(outcomes)
    for index in range(count):
        outcome = next(iterator, _NOTHING)
        if outcome is _NOTHING:
            raise _TooFewError("the backend returned fewer outcomes than cases")
        if index == count - 1 and next(iterator, _NOTHING) is not _NOTHING:
            raise _TooManyError(
                f"the backend returned more than {count} outcomes for the batch of {count} cases "
                "that ends here; any of them may be another case's"
            )
        yield outcome


_NOTHING: Final[Any] = object()


def breakdown_of(error: Exception, case: Case) -> Breakdown:
    """Return the breakdown of a case on which the backend raised an exception."""
    if isinstance(error, MemoryError):
        return Breakdown(BreakdownKind.OUT_OF_MEMORY, str(error) or "out of memory")
    if isinstance(error, _TooFewError | _TooManyError):
        return Breakdown(BreakdownKind.ERROR, str(error))
    import traceback  # Only an exception needs it.

    trace = "".join(traceback.format_exception(error))[-_LONGEST_TRACE:]
    outcome = checked_outcome(Breakdown(BreakdownKind.ERROR, described(error), trace), case)
    assert isinstance(outcome, Breakdown)
    return outcome
