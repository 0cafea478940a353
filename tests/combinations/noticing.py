"""Whether a case for pairs notices mistakes: its expectation is spoiled, and it must fail."""

from __future__ import annotations

from typing import Final

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.model import Case
from dmlconf.judging.judge import Recorded
from dmlconf.reference.evaluation import evaluate
from dmlconf.strength.expectations import measure_expectations

__all__ = ["notices"]

_SEEDS: Final = 3
"""How often each output is spoiled in each way, each time at other elements."""

_LEAST: Final = 0.95


def notices(case: Case) -> bool:
    """Return whether a case notices all but a few spoiled elements of its outputs.

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
