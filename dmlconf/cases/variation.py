"""Give a case other inputs, for dispatches that follow its first one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmlconf.cases.model import Case, Fill
from dmlconf.tensors.fills import challenged

__all__ = ["is_judged", "varied"]


def varied(case: Case, number: int) -> Case:
    """Return the case with other inputs and without an expectation.

    Generated data gets another seed or shift (`challenged`). If no data has a seed or a shift, the
    elements of each input are rotated by `number`. Outputs are then not judged (`is_judged`), since
    rotated data, such as indices, may be invalid.

    Args:
        number: which other inputs, below `most_variations`; 0 returns the case itself.
    """
    if number == 0:
        return case
    identifier = f"{case.identifier}#inputs-{number}"
    if is_judged(case):
        data = {
            name: replace(part, arguments=challenged(part.name, part.arguments, number))
            if isinstance(part, Fill)
            else part
            for name, part in case.data.items()
        }
        return replace(case, identifier=identifier, data=data, expectation=None)
    turned = {
        name: np.roll(array.ravel(), number).reshape(array.shape)
        for name, array in case.inputs().items()
    }
    return replace(case, identifier=identifier, data=turned, expectation=None)


def is_judged(case: Case) -> bool:
    """Return whether a case's variations can be judged: some data has a seed or a shift."""
    return any(
        isinstance(part, Fill) and challenged(part.name, part.arguments, 1) != part.arguments
        for part in case.data.values()
    )
