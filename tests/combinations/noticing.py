"""Say whether a case notices mistakes: whether it fails with wrong outputs."""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.model import Case
from dmlconf.judging.judge import Recorded, judge
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.reference.evaluation import evaluate
from dmlconf.strength.expectations import measure_expectations, sources

__all__ = ["notices", "notices_gross_mistakes"]

_SEEDS: Final = 3
"""How often each perturbation is tried, each time at other elements."""

_LEAST: Final = 0.95


def notices(case: Case) -> bool:
    """Return whether a case notices nearly all perturbations of its outputs."""
    any_value = {each.text for of_kind in sources().values() for each in of_kind if each.any_value}
    counted = noticed = 0
    for seed in range(_SEEDS):
        figure = measure_expectations(
            [case], lambda each: Recorded(Outputs(evaluate(each))), seed=seed
        )
        for tally in figure.tallies.values():
            opened = sum(n for source, n in tally.permitted.items() if source in any_value)
            counted += tally.counted + opened
        noticed += sum(tally.noticed for tally in figure.tallies.values())
    return noticed >= _LEAST * counted


def notices_gross_mistakes(case: Case) -> bool:
    """Return whether a case fails if one output becomes all 0, all 1 or all NaN."""
    right = evaluate(case)
    recorded = Recorded(Outputs(right))
    allowances = CaseAllowances(case)

    def passes(name: str, value: float) -> bool:
        wrong = np.full_like(right[name], value)
        if np.array_equal(wrong, right[name], equal_nan=wrong.dtype.kind == "f"):
            return False  # The value is right.
        outputs = Outputs({**right, name: wrong})
        verdict = judge(case, outputs, lambda _: recorded, allowances=allowances)
        return not verdict.status.fails_run

    def shows(name: str) -> bool:
        values = (0, 1, np.nan) if right[name].dtype.kind == "f" else (0, 1)
        return not any(passes(name, value) for value in values)

    return any(map(shows, right))
