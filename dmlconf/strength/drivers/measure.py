"""Inject driver defects into the cases that meet their conditions, and count what is noticed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from dmlconf.backends.protocol import Fault, FaultKind
from dmlconf.cases.model import Case
from dmlconf.judging.judge import Against
from dmlconf.reference.evaluation import evaluate
from dmlconf.strength.drivers.applicability import OperatorDefect
from dmlconf.strength.drivers.catalogue import DriverDefect, driver_defects, size_defects
from dmlconf.strength.drivers.computation import Arrays, Computation
from dmlconf.strength.judging import CaseJudge
from dmlconf.strength.tallies import CaseTally
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import Status

__all__ = ["DriverStrength", "DriverTally", "defects_by_name", "measure_case"]

_NOT_NUMBERS = ("Ind", "Length", "Mask", "Step", "State", "ZeroPoint")
"""Parts of the names of integer inputs that stay when the other inputs become random."""


@dataclass(slots=True)
class DriverTally:
    """The cases' results for one driver defect in one operator.

    Attributes:
        tried: how many cases were tried.
        ran: how many of them have an output that the defect changes, or would with other data.
        hidden: how many of `ran` have data that hide the defect.
        caught: how many do not pass with the defect.
        missed: the first case that passes although an output changes.
    """

    tried: int = 0
    ran: int = 0
    hidden: int = 0
    caught: int = 0
    missed: str | None = None

    def add(self, later: DriverTally) -> None:
        """Add the results of later cases."""
        self.tried += later.tried
        self.ran += later.ran
        self.hidden += later.hidden
        self.caught += later.caught
        self.missed = self.missed or later.missed


@dataclass(slots=True)
class DriverStrength:
    """The tallies of driver defects, and of cases by identifier."""

    pairs: dict[OperatorDefect, DriverTally] = field(default_factory=dict)
    cases: dict[str, CaseTally] = field(default_factory=dict)

    def add(self, later: DriverStrength) -> None:
        """Add later results, of the same or of other cases."""
        for pair, tally in later.pairs.items():
            self.pairs.setdefault(pair, DriverTally()).add(tally)
        for identifier, noticed in later.cases.items():
            self.cases.setdefault(identifier, CaseTally(noticed.operator)).add(noticed)


@cache
def defects_by_name() -> Mapping[str, DriverDefect]:
    """Return all defects of drivers and of sizes."""
    return {defect.name: defect for defect in (*driver_defects(), *size_defects())}


def measure_case(
    strength: DriverStrength, case: Case, pairs: Sequence[OperatorDefect], against: Against
) -> None:
    """Try the defects of `pairs` on a case, and add the results to `strength`.

    A case is left out if it breaks a constraint, does not pass with the right outputs, or has right
    outputs that do not fit into memory.
    """
    if case.violations():
        return
    inputs = case.inputs()
    try:
        outputs = evaluate(case, inputs)
    except MemoryError:
        return
    right = Computation(replace(case, data=inputs), inputs, outputs)
    judged = CaseJudge(right.case, against)
    if judged(outputs) is not Status.PASSED:
        return
    noticed = strength.cases.setdefault(case.identifier, CaseTally(case.operator_name))
    other: list[Computation | None] = []
    for pair in pairs:
        defect = defects_by_name()[pair.defect]
        tally = strength.pairs.setdefault(pair, DriverTally())
        tally.tried += 1
        changed = _changed(right, defect)
        if changed is None:
            if not other:
                other.append(_with_other_data(right))
            if other[0] is not None and _changed(other[0], defect) is not None:
                tally.ran += 1
                tally.hidden += 1
                noticed.ran += 1
            continue
        tally.ran += 1
        noticed.ran += 1
        if _fails(right, judged, defect, changed):
            tally.caught += 1
            noticed.caught += 1
        else:
            tally.missed = tally.missed or case.identifier


def _changed(right: Computation, defect: DriverDefect) -> Arrays | None:
    """Return the wrong outputs of a kernel with the defect; None if all are right."""
    with np.errstate(all="ignore"):
        arrays = defect.inject(right)
    if not arrays:
        return None
    changed = {
        name: np.ascontiguousarray(array)
        for name, array in arrays.items()
        if name in right.outputs and not _same(array, right.outputs[name])
    }
    return changed or None


def _same(one: Array, other: Array) -> bool:
    return np.array_equal(one, other, equal_nan=other.dtype.kind == "f") and (
        other.dtype.kind != "f" or bool((np.signbit(one) == np.signbit(other)).all())
    )


def _fails(right: Computation, judged: CaseJudge, defect: DriverDefect, changed: Arrays) -> bool:
    if not defect.in_second_dispatch:
        return judged({**right.outputs, **changed}) is not Status.PASSED
    faults = tuple(
        Fault(
            FaultKind.NOT_DETERMINISTIC,
            "elements differ between two dispatches",
            name,
            np.flatnonzero(array != right.outputs[name]),
        )
        for name, array in changed.items()
    )
    return judged(right.outputs, faults) is not Status.PASSED


def _with_other_data(right: Computation) -> Computation | None:
    """Return the case with random inputs and their right outputs; None if the reference fails.

    Integers such as indices stay (`_NOT_NUMBERS`).
    """
    rng = np.random.default_rng(1)
    inputs = {name: _random(name, array, rng) for name, array in right.inputs.items()}
    outputs = right.again(inputs)
    if outputs is None:
        return None
    return Computation(replace(right.case, data=inputs), inputs, outputs)


def _random(name: str, array: Array, rng: np.random.Generator) -> Array:
    if array.dtype.kind == "f":
        numbers: Array = np.asarray(rng.uniform(0.5, 2, array.shape))
        return numbers.astype(array.dtype)
    if any(part in name for part in _NOT_NUMBERS):
        return array
    most = {1: 7, 2: 200, 4: 1 << 27, 8: 1 << 40}[array.itemsize]
    least = -most if array.dtype.kind == "i" else 0
    integers: Array = np.asarray(rng.integers(least, most, array.shape))
    return integers.astype(array.dtype)
