"""Correct WebNN's tests that expect wrong values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import sqrt
from typing import Final

import numpy as np

from dmlconf.cases.model import Case, ExpectedOutputs
from dmlconf.tensors.datatypes import Array
from tests.backends.webnn.wpt_cases.wpt_tests import WptTest

__all__ = ["Mistake", "mistake_of"]

_GREATEST_ROOT: Final = sqrt(9 * 100**2)
"""The L2 pools of these tests have nine numbers below 100."""


@dataclass(frozen=True, slots=True)
class Mistake:
    """What several tests (`FILE: NAME`) expect wrongly; `corrected` returns the right output."""

    names: tuple[str, ...]
    description: str
    corrected: Callable[[Array], Array]

    def correct(self, case: Case) -> Case:
        assert isinstance(case.expectation, ExpectedOutputs)
        outputs = {n: self.corrected(each) for n, each in case.expectation.outputs.items()}
        return replace(case, expectation=ExpectedOutputs(outputs, case.expectation.provenance))


def mistake_of(test: WptTest) -> Mistake | None:
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
