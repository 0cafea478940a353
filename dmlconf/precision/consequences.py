"""What an output must be, given other outputs of the same dispatch.

A rule may permit several scales, and of each the quantized elements. Beside the scale that was
returned, only its own elements are right.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dmlconf.precision.allowance import Interval, elements_at
from dmlconf.precision.rules import within
from dmlconf.tensors.datatypes import Array

__all__ = ["Consequence", "best_choice"]


@dataclass(frozen=True, slots=True)
class Consequence:
    """What an output must be, given other outputs.

    Attributes:
        output: the output's tensor.
        given: the tensors of the other outputs.
        choices: what a device may choose for the whole output. Each choice consists of candidates,
            as a rule `one of` has them: each right element lies in at least one of them.
    """

    output: str
    given: tuple[str, ...]
    choices: Sequence[Sequence[Interval]]


def best_choice(
    values: Array, indices: Array | slice, consequence: Consequence
) -> tuple[Sequence[Interval], Array]:
    """Return the choice that leaves out the fewest values, and the positions of these values.

    The choice has only the ends of these values.

    Args:
        values: elements of the output, flat.
        indices: their indices in the whole output, in row-major order.
    """
    found = []
    for choice in consequence.choices:
        candidates = [
            (elements_at(least, indices), elements_at(greatest, indices))
            for least, greatest in choice
        ]
        right = np.logical_or.reduce([within(values, *ends) for ends in candidates])
        outside = np.flatnonzero(~right)
        found.append(([(least[outside], most[outside]) for least, most in candidates], outside))
    return min(found, key=lambda each: len(each[1]))
