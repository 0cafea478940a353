"""Correct WebNN's tests that expect wrong values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dmlconf.cases.model import Case, ExpectedOutputs
from dmlconf.tensors.datatypes import Array
from tests.backends.webnn.wpt_cases.wpt_tests import WptTest

__all__ = ["Mistake", "mistake_of"]

_GREATEST_ROOT: Final = 300
"""No right output is greater: an L2 pool of nine numbers below 100 is below sqrt(9 * 100²) =
300."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """What several tests expect wrongly.

    Attributes:
        names: the tests, as `wpt_results.yaml` names them: `FILE: NAME`.
        description: what is wrong.
        corrected: returns the right output for a wrong one.
    """

    names: tuple[str, ...]
    description: str
    corrected: Callable[[Array], Array]

    def correct(self, case: Case) -> Case:
        """Return a case with the outputs that the test should expect."""
        assert isinstance(case.expectation, ExpectedOutputs)
        outputs = {n: self.corrected(each) for n, each in case.expectation.outputs.items()}
        return replace(case, expectation=ExpectedOutputs(outputs, case.expectation.provenance))


def mistake_of(test: WptTest) -> Mistake | None:
    """Return the mistake of a test, None if none is known."""
    name = f"{test.file}: {test.name}"
    return next((each for each in _MISTAKES if name in each.names), None)


def _with_roots(expected: Array) -> Array:
    return np.where(expected > _GREATEST_ROOT, np.sqrt(expected), expected)


_MISTAKES: Final = (
    Mistake(
        (
            "pooling: l2Pool2d float32 4D tensor options.roundingType=ceil",
            "pooling: l2Pool2d float32 4D tensor options.outputSizes ignores "
            "options.roundingType=floor",
        ),
        "four of the numbers that it expects lack the root, which later versions of it have",
        _with_roots,
    ),
)
