"""The solver of `fuzz` changes a desc until a condition holds, or until it no longer holds.

The tested code is in `dmlconf/fuzzing/solving.py`, `dmlconf/fuzzing/terms.py`,
`dmlconf/fuzzing/conditions.py` and `dmlconf/fuzzing/drafts.py`.
"""

from __future__ import annotations

from typing import Any

import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.loader import operator
from dmlconf.expressions import Expression
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.conditions import condition_over
from dmlconf.fuzzing.drafts import Drafts, UnfitError
from dmlconf.fuzzing.solving import PRESENT, Solver
from dmlconf.fuzzing.terms import Scope, condition_of
from dmlconf.tensors.datatypes import DataType


def tensor(*sizes: int, data_type: DataType = DataType.FLOAT32) -> TensorDesc:
    return TensorDesc(data_type, sizes)


CONVOLUTION = operator("CONVOLUTION")
DESC: dict[str, Any] = {
    "InputTensor": tensor(1, 6, 5, 7),
    "FilterTensor": tensor(4, 3, 3, 2),
    "BiasTensor": None,
    "OutputTensor": tensor(1, 4, 3, 6),
    "Mode": "CONVOLUTION",
    "Direction": "FORWARD",
    "DimensionCount": 2,
    "Strides": (1, 1),
    "Dilations": (1, 1),
    "StartPadding": (0, 0),
    "EndPadding": (0, 0),
    "OutputPadding": (0, 0),
    "GroupCount": 2,
    "FusedActivation": None,
}

FALSE_CONDITIONS = [
    "InputTensor.Sizes[1] == FilterTensor.Sizes[1]",
    "InputTensor.Sizes[2:] == OutputTensor.Sizes[2:]",
    "OutputTensor.Sizes == tuple(size + 2 for size in InputTensor.Sizes)",
    "InputTensor.DimensionCount == DimensionCount + 3",
    "InputTensor.Sizes[1] % 5 == 0",
    "(InputTensor.Sizes[2] - 1) // 2 + 1 == OutputTensor.Sizes[2] + 4",
    "product(FilterTensor.Sizes) == 5",
    "sum(InputTensor.Sizes) == 30",
    "max(InputTensor.Sizes) < 4",
    "BiasTensor is not None",
    "all(stride > 1 for stride in Strides)",
    "any(padding > 1 for padding in StartPadding)",
    "GroupCount == 3 or Direction == 'BACKWARD'",
    "InputTensor.DataType == 'FLOAT16'",
    "Mode in ('CROSS_CORRELATION',)",
    "not GroupCount == 2",
    "same(t.Sizes[0] for t in (InputTensor, FilterTensor))",
    "exactly_one(BiasTensor, FusedActivation)",
    "FusedActivation is not None and FusedActivation['operator'] == 'ACTIVATION_TANH'",
    "InputTensor.Sizes == right_aligned(FilterTensor.Sizes[2:], 4)",
    "InputTensor.Sizes == ones(2) + FilterTensor.Sizes[2:]",
    "starts_with(InputTensor.Sizes, FilterTensor.Sizes[:2])",
    "drop_leading_ones(InputTensor.Sizes) == (5, 7)",
    "InputTensor.Sizes == reversed(FilterTensor.Sizes)",
    "BiasTensor.Sizes[1] == 4",
    "InputTensor.Sizes[GroupCount + 2] == 1",
]

TRUE_CONDITIONS = [
    "InputTensor.Sizes[1] == FilterTensor.Sizes[1] * GroupCount",
    "InputTensor.DataType == OutputTensor.DataType",
    "InputTensor.DimensionCount == OutputTensor.DimensionCount",
    "all(stride > 0 for stride in Strides)",
    "BiasTensor is None or BiasTensor.Sizes[1] == 4",
    "GroupCount >= 1",
    "Direction in ('FORWARD', 'BACKWARD')",
    "same(t.DataType for t in (InputTensor, FilterTensor))",
    "OutputTensor.Sizes[:1] == (1,)",
]


def solved(text: str, target: bool) -> bool:
    """Return whether the solver finds changes that give the condition the value `target`."""
    chance = Chance(3, text)
    drafts = Drafts(CONVOLUTION, CONVOLUTION.support[0], chance)
    condition = condition_over(CONVOLUTION, "tested", Expression(text))
    assert condition.holds(DESC) is not target, "the desc is to be changed"
    desc = DESC
    for _ in range(6):  # Some conditions need several steps.
        term = condition_of(condition.require, Scope(desc, {}, {}))
        following = None
        for changes in Solver(chance, beyond_enums=not target).solve(term, target):
            try:
                other = drafts.changed(desc, changes)
            except UnfitError:
                continue
            if condition.holds(other) is target:
                return True
            following = following or other
        if following is None:
            return False
        desc = dict(following)
    return False


@pytest.mark.parametrize("text", FALSE_CONDITIONS)
def test_solver_makes_a_condition_true(text: str) -> None:
    assert solved(text, True)


@pytest.mark.parametrize("text", TRUE_CONDITIONS)
def test_solver_makes_a_condition_false(text: str) -> None:
    assert solved(text, False)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("InputTensor",), None),
        (("InputTensor", "DataType"), "INT8"),
        (("InputTensor", "Sizes", 0), 0),
        (("InputTensor", "Sizes"), ()),
        (("InputTensor", "Sizes"), (1,) * 9),
        (("GroupCount",), -1),
        (("GroupCount",), True),
        (("Mode",), "SIDEWAYS"),
        (("Strides",), (1, -1)),
        (("DimensionCount",), 1000),
        (("DimensionCount",), (2,)),
        (("DimensionCount",), True),
    ],
)
def test_values_that_a_field_cannot_have_are_refused(path: tuple[Any, ...], value: Any) -> None:
    drafts = Drafts(CONVOLUTION, CONVOLUTION.support[0], Chance(1))
    with pytest.raises(UnfitError):
        drafts.changed(DESC, ((path, value),))


@pytest.mark.parametrize(
    "text",
    [
        "all(axis > 0 for axis in Axes)",
        "sum(axis for axis in Axes) > 0",
        "all(a == b for a, b in zip(Sizes, Axes))",
        "all(axis == index for index, axis in enumerate(Axes))",
        "all(a == b for a, b in (Axes, Sizes))",
        "-Axes < 0",
    ],
)
def test_a_condition_that_needs_an_absent_value_is_false_and_holds_once_it_is_present(
    text: str,
) -> None:
    scope = Scope({"Axes": None, "Sizes": (1, 2)}, {}, {})
    term = condition_of(Expression(text), scope)
    assert term.value is Expression(text).holds({"Axes": None, "Sizes": (1, 2)}) is False
    assert ((("Axes",), PRESENT),) in Solver(Chance("absent", 1)).solve(term, True)


def test_arrays_of_one_count_keep_the_same_length() -> None:
    drafts = Drafts(CONVOLUTION, CONVOLUTION.support[0], Chance(1))
    desc = drafts.changed(DESC, ((("DimensionCount",), 3),))
    assert {len(desc[name]) for name in CONVOLUTION.count_fields["DimensionCount"]} == {3}
    assert desc["Strides"][:2] == (1, 1)
    shorter = drafts.changed(desc, ((("Strides",), (5,)),))
    assert (shorter["DimensionCount"], len(shorter["Dilations"])) == (1, 1)
