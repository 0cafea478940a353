"""The speed of generating random cases: `python -m benchmarks.fuzzing [OPERATOR ...]`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import islice
from statistics import median
from time import perf_counter

from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.fuzzing.plan import Fuzz, Kind

CASES = 20


def main(operators: Sequence[str]) -> None:
    """Print cases per second of each kind, and the slowest of some operators or of all."""
    names = tuple(operators) or tuple(name for name in operator_names() if operator(name).fields)
    for kind in Kind:
        fuzz = Fuzz(names, 1, kind)
        count = CASES * (min(10, len(names)) if kind is Kind.GRAPHS else len(names))
        list(islice(fuzz.cases(), len(names)))  # Compile what is compiled once.
        began = perf_counter()
        list(islice(fuzz.cases(range(1, 10**6)), count))
        print(f"{kind}: {count / (perf_counter() - began):,.0f} cases per second ({count:,})")
    times = {name: seconds_of(name) for name in names}
    slowest = sorted(times, key=lambda name: -times[name])[:5]
    print(f"median operator: {1000 * median(times.values()):.1f} ms per case")
    for name in slowest:
        print(f"{name}: {1000 * times[name]:.1f} ms per case")


def seconds_of(name: str) -> float:
    """Return the seconds that a valid case of an operator takes."""
    began = perf_counter()
    list(Fuzz((name,), 2).cases(range(CASES)))
    return (perf_counter() - began) / CASES


if __name__ == "__main__":
    main(sys.argv[1:])
