"""Judge wrong results of cases, and name survivors: verdicts that pass."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from dmlconf.backends.faulty.backend import negated, scaled
from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.model import Case, ExpectedRejection, PlannedCase
from dmlconf.judging.judge import Against, judge
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.verdicts.verdict import Status, Verdict

Change = Callable[[Array, DataType], Array]


def _zeros(array: Array, data_type: DataType) -> Array:
    return np.zeros_like(array)


CHANGES: Final[Mapping[str, Change]] = {
    "zeros": _zeros,
    "negated": negated,
    "scaled": partial(scaled, by=1.1),
}


@dataclass(frozen=True)
class Survivor:
    """A verdict that passes although a change made `wrong` elements wrong."""

    change: str
    case: str
    loose: int
    wrong: int


def one_element_off(array: Array, data_type: DataType) -> Array:
    """Reduce the size of the largest finite element by 1%, or by 1 in integers."""
    changed = array.copy()
    sizes = np.abs(np.where(np.isfinite(array), array, 0).astype(np.float64))
    if sizes.any():
        coordinates = np.unravel_index(sizes.argmax(), array.shape)
        if data_type.is_float:
            changed[coordinates] *= array.dtype.type(0.99)
        else:
            changed[coordinates] -= np.sign(array[coordinates]) if data_type.is_signed else 1
    return changed


LAYER_CHANGES: Final[Mapping[str, Change]] = {
    "zeros": _zeros,
    "negated": negated,
    "1% off": partial(scaled, by=1.01),
    "one element off": one_element_off,
}


def survivors(
    plan: Iterable[PlannedCase], against: Against, changes: Mapping[str, Change] = CHANGES
) -> Iterator[Survivor]:
    """Yield the verdicts that pass although a change altered the outputs."""
    for planned in plan:
        case = build(planned)
        if isinstance(case.expectation, ExpectedRejection):
            continue
        case = case.with_inputs()
        right = run_case(case)
        if not isinstance(right, Outputs):
            continue
        for name, verdict, wrong in _passing(case, right, changes, against):
            loose = sum(figures.loose or 0 for figures in verdict.figures.values())
            yield Survivor(name, planned.identifier, loose, wrong)


def fails_wrong_results(case: Case, changes: Mapping[str, Change] = CHANGES) -> bool:
    """Return whether each change fails; false for outputs of only zeros and NaN."""
    right = run_case(case)
    if not isinstance(right, Outputs):
        return False
    numbers = any(((array == array) & (array != 0)).any() for array in right.arrays.values())
    return numbers and next(_passing(case, right, changes, lambda case: right), None) is None


def _passing(
    case: Case, right: Outputs, changes: Mapping[str, Change], against: Against
) -> Iterator[tuple[str, Verdict, int]]:
    types = {name: tensor.DataType for name, tensor in case.outputs().items()}
    allowances = CaseAllowances(case)
    for name, change in changes.items():
        with np.errstate(all="ignore"):
            arrays = {o: change(array, types[o]) for o, array in right.arrays.items()}
        wrong = sum(_differing(arrays[o], right.arrays[o]) for o in arrays)
        if not wrong:
            continue
        verdict = judge(case, Outputs(arrays), against, allowances=allowances)
        if verdict.status is Status.PASSED:
            yield name, verdict, wrong


def _differing(one: Array, other: Array) -> int:
    same = (one == other) | ((one != one) & (other != other))
    return int(np.count_nonzero(~same))
