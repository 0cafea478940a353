"""`violations` names the constraints that a desc breaks, and none for a valid desc.

The tested code is in `dmlconf/catalogue/constraints.py`, `schemas/operators/` and
`schemas/common.yaml`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

import pytest

from dmlconf.catalogue.constraints import GENERAL_CONSTRAINTS, constraint_names, violations
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.loader import operator, tensor_constraints
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.expressions import Expression
from dmlconf.tensors.datatypes import DataType

FLOAT, UINT = DataType.FLOAT32, DataType.UINT32


def tensor(*sizes: int, data_type: DataType = FLOAT) -> TensorDesc:
    return TensorDesc(data_type, sizes)


VALID: Final[dict[str, dict[str, Any]]] = {
    "ARGMIN": {
        "InputTensor": tensor(2, 3),
        "OutputTensor": tensor(2, 1, data_type=UINT),
        "AxisCount": 1,
        "Axes": (1,),
        "AxisDirection": "INCREASING",
    },
    "GATHER": {
        "InputTensor": tensor(2, 3),
        "IndicesTensor": tensor(1, 4, data_type=UINT),
        "OutputTensor": tensor(2, 4),
        "Axis": 1,
        "IndexDimensions": 1,
    },
    "JOIN": {
        "InputCount": 2,
        "InputTensors": (tensor(2, 3), tensor(2, 1)),
        "OutputTensor": tensor(2, 4),
        "Axis": 1,
    },
    "SCATTER_ELEMENTS": {
        "InputTensor": tensor(2, 3),
        "IndicesTensor": tensor(2, 2, data_type=UINT),
        "UpdatesTensor": tensor(2, 2),
        "OutputTensor": tensor(2, 3),
        "Axis": 1,
    },
    "TILE": {
        "InputTensor": tensor(2, 3),
        "OutputTensor": tensor(2, 6),
        "RepeatsCount": 2,
        "Repeats": (1, 2),
    },
}

BROKEN: Final[list[tuple[str, str, dict[str, Any]]]] = [
    ("ARGMIN", "same-dimension-count", {"OutputTensor": tensor(1, 2, 1, data_type=UINT)}),
    ("ARGMIN", "axes-in-range", {"Axes": (2,), "OutputTensor": tensor(2, 3, data_type=UINT)}),
    ("ARGMIN", "axis-direction", {"AxisDirection": 7}),
    ("ARGMIN", "output-sizes", {"OutputTensor": tensor(2, 3, data_type=UINT)}),
    ("ARGMIN", "output-sizes", {"Axes": (), "AxisCount": 0}),
    ("GATHER", "same-dimension-count", {"IndicesTensor": tensor(4, data_type=UINT)}),
    ("GATHER", "same-dimension-count", {"OutputTensor": tensor(1, 2, 4)}),
    ("GATHER", "same-data-type", {"OutputTensor": tensor(2, 4, data_type=DataType.INT32)}),
    ("GATHER", "axis-in-range", {"Axis": 2, "OutputTensor": tensor(3, 4)}),
    ("GATHER", "index-dimensions-in-range", {"IndexDimensions": 3}),
    ("GATHER", "batch-sizes", {"IndicesTensor": tensor(3, 4, data_type=UINT)}),
    ("GATHER", "output-sizes", {"OutputTensor": tensor(2, 5)}),
    ("JOIN", "at-least-one-input", {"InputCount": 0, "InputTensors": ()}),
    ("JOIN", "same-data-type", {"OutputTensor": tensor(2, 4, data_type=DataType.INT32)}),
    ("JOIN", "same-dimension-count", {"InputTensors": (tensor(2, 3), tensor(1, 2, 1))}),
    ("JOIN", "axis-in-range", {"Axis": 2}),
    ("JOIN", "same-sizes-but-axis", {"InputTensors": (tensor(2, 3), tensor(3, 1))}),
    ("JOIN", "axis-sizes-add-up", {"OutputTensor": tensor(2, 5)}),
    ("SCATTER_ELEMENTS", "same-dimension-count", {"UpdatesTensor": tensor(1, 2, 2)}),
    (
        "SCATTER_ELEMENTS",
        "same-data-type",
        {"UpdatesTensor": tensor(2, 2, data_type=DataType.INT32)},
    ),
    ("SCATTER_ELEMENTS", "axis-in-range", {"Axis": 2}),
    ("SCATTER_ELEMENTS", "output-sizes", {"OutputTensor": tensor(2, 4)}),
    (
        "SCATTER_ELEMENTS",
        "indices-sizes",
        {"IndicesTensor": tensor(1, 2, data_type=UINT), "UpdatesTensor": tensor(1, 2)},
    ),
    (
        "SCATTER_ELEMENTS",
        "indices-fit-axis",
        {"IndicesTensor": tensor(2, 4, data_type=UINT), "UpdatesTensor": tensor(2, 4)},
    ),
    ("SCATTER_ELEMENTS", "updates-sizes", {"UpdatesTensor": tensor(2, 3)}),
    ("TILE", "same-data-type", {"OutputTensor": tensor(2, 6, data_type=DataType.INT32)}),
    ("TILE", "same-dimension-count", {"OutputTensor": tensor(1, 2, 6)}),
    ("TILE", "one-repeat-per-dimension", {"Repeats": (1, 2, 1), "RepeatsCount": 3}),
    ("TILE", "repeats-not-zero", {"Repeats": (1, 0)}),
    ("TILE", "output-sizes", {"OutputTensor": tensor(2, 5)}),
]
"""Operator, constraint, and changes of the desc in VALID that break the constraint."""

ALSO_BROKEN: Final = {
    ("ARGMIN", "same-dimension-count"): {"output-sizes"},
    ("JOIN", "at-least-one-input"): {"axis-sizes-add-up"},
    ("JOIN", "same-dimension-count"): {"same-sizes-but-axis", "axis-sizes-add-up"},
    ("JOIN", "axis-in-range"): {"axis-sizes-add-up", "same-sizes-but-axis"},
    ("SCATTER_ELEMENTS", "same-dimension-count"): {"updates-sizes"},
    ("SCATTER_ELEMENTS", "axis-in-range"): {"indices-sizes", "indices-fit-axis"},
    ("TILE", "same-dimension-count"): {"output-sizes"},
    ("TILE", "repeats-not-zero"): {"output-sizes"},
}
"""Other constraints that a change in BROKEN breaks."""


@pytest.mark.parametrize("name", VALID)
def test_a_valid_desc_breaks_nothing(name: str) -> None:
    assert violations(operator(name), VALID[name]) == ()


@pytest.mark.parametrize("name", VALID)
def test_broken_has_every_enforced_constraint(name: str) -> None:
    enforced = {entry.name for entry in operator(name).constraints if entry.enforced}
    assert enforced == {constraint for broken, constraint, _ in BROKEN if broken == name}


@pytest.mark.parametrize(("name", "constraint", "change"), BROKEN)
def test_only_broken_constraints_are_named(
    name: str, constraint: str, change: dict[str, Any]
) -> None:
    broken = violations(operator(name), {**VALID[name], **change})
    assert set(broken) == {constraint} | ALSO_BROKEN.get((name, constraint), set())


def tensor_names(name: str, *kinds: FieldKind) -> list[str]:
    """Return the tensors of an operator's valid desc, such as `InputTensors[0]`."""
    return [tensor_name for tensor_name, _, _ in tensors_of(operator(name), VALID[name], *kinds)]


def with_tensor(name: str, tensor_name: str, **change: Any) -> dict[str, Any]:
    desc = VALID[name]
    field, bracket, index = tensor_name.partition("[")
    if not bracket:
        return {**desc, field: replace(desc[field], **change)}
    tensors = list(desc[field])
    number = int(index.rstrip("]"))
    tensors[number] = replace(tensors[number], **change)
    return {**desc, field: tuple(tensors)}


EVERY_TENSOR: Final = [
    (name, tensor_name)
    for name in VALID
    for tensor_name in tensor_names(name, FieldKind.INPUT, FieldKind.OUTPUT)
]

INVALID_CHANGES: Final[dict[str, list[dict[str, Any]]]] = {
    "dimension-count-in-range": [{"Sizes": ()}, {"Sizes": (1,) * 9}],
    "sizes-not-zero": [{"Sizes": (2, 0)}],
    "fewer-than-2-to-the-32-elements": [{"Sizes": (1 << 16, 1 << 16)}],
    "strides-per-dimension": [{"Strides": (1,)}, {"Strides": (1, 1, 1)}, {"Strides": ()}],
    "total-size-holds-all-elements": [
        {"DeclaredTensorSizeInBytes": 0},
        {"DeclaredTensorSizeInBytes": 4},
    ],
    "base-offset-alignment": [
        {"GuaranteedBaseOffsetAlignment": alignment} for alignment in (1, 3, 8, 15, 24, 48)
    ],
    "output-strides-do-not-overlap": [{"Strides": (0, 0)}],
    "output-not-owned-by-dml": [{"Flags": ("OWNED_BY_DML",)}],
}
"""For each constraint on tensors of any operator, changes of a tensor that break it."""

VALID_CHANGES: Final[list[dict[str, Any]]] = [
    {"Strides": (100, 1)},
    {"Strides": (1, 100)},
    {"DeclaredTensorSizeInBytes": 1 << 40},
    *({"GuaranteedBaseOffsetAlignment": alignment} for alignment in (0, 16, 32, 256, 65536)),
]


def test_invalid_changes_has_every_constraint_of_tensors() -> None:
    assert INVALID_CHANGES.keys() == {entry.name for entry in tensor_constraints()}


@pytest.mark.parametrize("constraint", tensor_constraints(), ids=lambda entry: entry.name)
@pytest.mark.parametrize(("name", "tensor_name"), EVERY_TENSOR)
def test_a_constraint_of_tensors_is_named_where_it_applies(
    name: str, tensor_name: str, constraint: Any
) -> None:
    is_output = tensor_name in tensor_names(name, FieldKind.OUTPUT)
    applies = (FieldKind.OUTPUT if is_output else FieldKind.INPUT) in constraint.applies_to
    for change in INVALID_CHANGES[constraint.name]:
        broken = violations(operator(name), with_tensor(name, tensor_name, **change))
        assert (constraint.name in broken) == applies, change


@pytest.mark.parametrize(("name", "tensor_name"), EVERY_TENSOR)
def test_valid_changes_of_a_tensor_break_nothing(name: str, tensor_name: str) -> None:
    for change in VALID_CHANGES:
        assert violations(operator(name), with_tensor(name, tensor_name, **change)) == ()


@pytest.mark.parametrize("name", VALID)
def test_inputs_may_repeat_elements_and_be_owned_by_dml(name: str) -> None:
    for tensor_name in tensor_names(name, FieldKind.INPUT):
        for change in ({"Strides": (0, 0)}, {"Flags": ("OWNED_BY_DML",)}):
            assert violations(operator(name), with_tensor(name, tensor_name, **change)) == ()


@pytest.mark.parametrize(("name", "tensor_name"), EVERY_TENSOR)
def test_an_unlisted_data_type_breaks_supported_data_type(name: str, tensor_name: str) -> None:
    broken = violations(operator(name), with_tensor(name, tensor_name, DataType=DataType.INT4))
    assert "supported-data-type" in broken


def test_an_undocumented_data_type_that_works_breaks_nothing() -> None:
    tile = operator("TILE")
    assert tile.undocumented_data_types["InputTensor"] == (DataType.FLOAT64,)
    double = {
        **VALID["TILE"],
        "InputTensor": tensor(2, 3, data_type=DataType.FLOAT64),
        "OutputTensor": tensor(2, 6, data_type=DataType.FLOAT64),
    }
    assert violations(tile, double) == ()


@pytest.mark.parametrize("data_type", ["INT16", "INT8", "UINT16", "UINT8"])
@pytest.mark.parametrize(
    ("function", "permitted"),
    [("L1", False), ("SUM", False), ("MULTIPLY", False), ("SUM_SQUARE", False), ("MAX", True)],
)
def test_reduce_permits_small_integers_only_for_some_functions(
    function: str, permitted: bool, data_type: str
) -> None:
    desc = {
        "Function": function,
        "InputTensor": tensor(2, 3, data_type=DataType(data_type)),
        "OutputTensor": tensor(2, 1, data_type=DataType(data_type)),
        "AxisCount": 1,
        "Axes": (1,),
    }
    assert violations(operator("REDUCE"), desc) == (() if permitted else ("supported-data-type",))


@pytest.mark.parametrize(("name", "tensor_name"), EVERY_TENSOR)
def test_an_unlisted_rank_breaks_supported_dimension_count(name: str, tensor_name: str) -> None:
    broken = violations(operator(name), with_tensor(name, tensor_name, Sizes=(1,) * 9))
    assert "supported-dimension-count" in broken


REQUIRED: Final = [
    (name, field.name) for name in VALID for field in operator(name).fields if not field.optional
]


@pytest.mark.parametrize(("name", "field"), REQUIRED)
def test_a_missing_field_breaks_required_field_first(name: str, field: str) -> None:
    desc = {**VALID[name], field: None}
    assert violations(operator(name), desc)[0] == "required-field"
    del desc[field]
    assert violations(operator(name), desc)[0] == "required-field"


@pytest.mark.parametrize("name", VALID)
def test_constraint_names_has_all_of_an_operator(
    name: str,
) -> None:
    entry = operator(name)
    own = {constraint.name for constraint in entry.constraints}
    assert constraint_names(entry) == own | INVALID_CHANGES.keys() | GENERAL_CONSTRAINTS.keys()


def test_an_unenforced_constraint_is_not_named() -> None:
    entry = operator("TILE")
    desc = {**VALID["TILE"], "OutputTensor": tensor(2, 5)}
    lenient = tuple(replace(constraint, enforced=False) for constraint in entry.constraints)
    assert violations(replace(entry, constraints=lenient), desc) == ()


def with_terms(terms: dict[str, str], require: str) -> Operator:
    tile = operator("TILE")
    constraint = replace(tile.constraints[0], name="by-terms", require=Expression(require))
    named = {name: Expression(term) for name, term in terms.items()}
    return replace(tile, terms=named, constraints=(constraint,))


LAST_AND_NEXT: Final = {"Last": "InputTensor.Sizes[-1]", "Next": "Last + 1"}
"""For the desc of TILE, Last is 3."""


@pytest.mark.parametrize(
    ("require", "broken"),
    [
        ("(Last, Next) == (3, 4)", ()),
        ("Next == Last", ("by-terms",)),
    ],
)
def test_a_constraint_may_use_terms_that_use_others(require: str, broken: tuple[str, ...]) -> None:
    assert violations(with_terms(LAST_AND_NEXT, require), VALID["TILE"]) == broken


@pytest.mark.parametrize(
    ("require", "broken"),
    [
        ("RepeatsCount == 2 or Beyond > 0", ()),
        ("Beyond > 0", ("by-terms",)),
        ("More > 0", ("by-terms",)),
        ("not Beyond", ("by-terms",)),
    ],
)
def test_a_failing_term_breaks_constraints_that_evaluate_it(
    require: str, broken: tuple[str, ...]
) -> None:
    terms = {"Beyond": "InputTensor.Sizes[7]", "More": "Beyond + 1"}
    assert violations(with_terms(terms, require), VALID["TILE"]) == broken
