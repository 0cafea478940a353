"""Check that a generated case notices mistakes: with a changed expectation it must fail."""

from __future__ import annotations

from typing import Final

import numpy as np

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.model import Case
from dmlconf.judging.judge import Recorded, judge
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.reference.evaluation import evaluate
from dmlconf.strength.expectations import measure_expectations

__all__ = ["notices", "notices_gross_mistakes"]

_SEEDS: Final = 3
"""How often each output is changed in each way, each time at other elements."""

_LEAST: Final = 0.95


def notices(case: Case) -> bool:
    """Return whether a case notices all but a few changed elements of its outputs.

    It does not if most elements are open, as beside infinities, or if sums leave small rests.
    What the source of a rule permits does not count.
    """
    counted = noticed = 0
    for seed in range(_SEEDS):
        figure = measure_expectations(
            [case], lambda each: Recorded(Outputs(evaluate(each))), seed=seed
        )
        counted += sum(tally.counted for tally in figure.tallies.values())
        noticed += sum(tally.noticed for tally in figure.tallies.values())
    return noticed >= _LEAST * counted


def notices_gross_mistakes(case: Case) -> bool:
    """Return whether the case fails if all elements of an output are 0, are 1, or are NaN.

    Infinities may leave nothing but NaN, or a scale besides open numbers: a case of that still
    says whether a kernel accepts them, and where it must give NaN or what is finite.
    """
    right = evaluate(case)
    recorded = Recorded(Outputs(right))
    allowances = CaseAllowances(case)

    def passes(name: str, value: float) -> bool:
        wrong = np.full_like(right[name], value)
        if np.array_equal(wrong, right[name], equal_nan=wrong.dtype.kind == "f"):
            return False  # It is no mistake.
        outputs = Outputs({**right, name: wrong})
        verdict = judge(case, outputs, lambda _: recorded, allowances=allowances)
        return not verdict.status.fails_run

    def shows(name: str) -> bool:
        values = (0, 1, np.nan) if right[name].dtype.kind == "f" else (0, 1)
        return not any(passes(name, value) for value in values)

    return any(map(shows, right))
