"""Time the comparison loop against `numpy.array_equal` on the same arrays, in the same run.

The arrays hold a million FLOAT32 values, each one ULP off what is expected, so that no shortcut
helps.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from dmlconf.catalogue.precision import PrecisionRule, RuleKind
from dmlconf.precision.allowance import Allowance, SumErrors
from dmlconf.precision.compare import compare

ELEMENTS = 1_000_000
ROUNDS = 31


def milliseconds(function: Callable[[], object]) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return 1000 * statistics.median(times)


def main() -> None:
    """Print a line for each kind of rule."""
    expected = np.random.default_rng(1).standard_normal(ELEMENTS).astype(np.float32)
    actual = np.nextafter(expected, np.float32(9))
    lowest, highest = (np.nextafter(expected, np.float32(end)) for end in (-9, 9))
    errors = SumErrors(np.abs(expected, dtype=np.float64) * 2)
    known = Allowance(errors=errors, interval=(lowest, highest))
    peer = milliseconds(lambda: np.array_equal(actual, expected))
    print(f"numpy.array_equal  {peer:6.2f} ms; three times and 10 ms: {3 * peer + 10:.2f} ms")
    for kind, limit in (
        ("exact", 0),
        ("ulp", 2),
        ("relative", 1e-5),
        ("accumulate", 1),
        ("interval", 0),
    ):
        rule = PrecisionRule(
            RuleKind(kind), limit, "benchmark", products=8, flushes=kind != "exact"
        )
        taken = milliseconds(lambda rule=rule: compare(actual, expected, rule, known))  # type: ignore[misc]
        print(f"{kind:<18} {taken:6.2f} ms")


if __name__ == "__main__":
    main()
