"""Run a case under any circumstance, and combine dispatches with the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from time import perf_counter
from typing import Final

from dmlconf.backends.circumstances import Circumstance, Dispatch, Exercised, Inapplicable
from dmlconf.backends.directml.circumstances import (
    aliased,
    evicted,
    interleaved,
    long,
    offset,
    owned,
    rebound,
    repeated,
    volatile,
)
from dmlconf.backends.directml.circumstances.bench import Bench, TooLargeError
from dmlconf.cases.model import Case
from dmlconf.tensors.sample import elements_digest

__all__ = ["EXERCISES", "exercise"]

_Exercise = Callable[[Bench, Case], list[Dispatch] | Exercised | Inapplicable]

EXERCISES: Final[Mapping[Circumstance, _Exercise]] = {
    Circumstance.REPEATED: repeated.exercise,
    Circumstance.REBOUND: rebound.exercise,
    Circumstance.OFFSET: offset.exercise,
    Circumstance.OWNED: owned.exercise,
    Circumstance.ALIASED: aliased.exercise,
    Circumstance.VOLATILE: volatile.exercise,
    Circumstance.EVICTED: evicted.exercise,
    Circumstance.INTERLEAVED: interleaved.exercise,
    Circumstance.LONG: long.exercise,
}


def exercise(bench: Bench, case: Case, circumstance: Circumstance) -> Exercised | Inapplicable:
    """Run a case under a circumstance; `Inapplicable` also if the case is too large for it.

    Raises:
        HResultError: a call failed.
        NativeCrashError: DirectML crashed.
    """
    began = perf_counter()
    with bench:
        try:
            seen = EXERCISES[circumstance](bench, case)
        except TooLargeError as error:
            return Inapplicable(str(error))
    if isinstance(seen, Inapplicable):
        return seen
    whole = seen if isinstance(seen, Exercised) else Exercised(tuple(seen))
    return replace(whole, dispatches=_together(whole.dispatches), seconds=perf_counter() - began)


def _together(dispatches: Iterable[Dispatch]) -> tuple[Dispatch, ...]:
    distinct: dict[tuple[object, ...], Dispatch] = {}
    for each in dispatches:
        digests = tuple((name, elements_digest(array)) for name, array in each.arrays.items())
        shared = tuple((each.in_place or {}).items())
        key = each.variation, digests, each.faults, shared
        known = distinct.get(key)
        times = each.times + (known.times if known else 0)
        distinct[key] = replace(each, times=times)
    return tuple(distinct.values())
