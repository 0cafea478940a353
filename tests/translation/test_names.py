"""An operator is found by its names in ONNX, WebNN and DirectML.h, and has a family.

The tested code is in `dmlconf/translation/names.py`, `dmlconf/catalogue/families.py`,
`schemas/translation/onnx.yaml` and `schemas/translation/webnn.yaml`.
"""

from __future__ import annotations

import pytest

from dmlconf.catalogue.families import OTHER, families
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import UnknownOperatorError, operator_names
from dmlconf.translation.names import (
    AmbiguousOperatorError,
    named_operators,
    one_operator,
    standard_names,
)


@pytest.mark.parametrize(
    ("name", "operators"),
    [
        ("Conv", ["CONVOLUTION"]),
        ("conv2d", ["CONVOLUTION"]),
        ("MatMul", ["GEMM"]),
        ("relu", ["ACTIVATION_RELU"]),
        ("Softmax", ["ACTIVATION_SOFTMAX", "ACTIVATION_SOFTMAX1"]),
        ("DML_GEMM_OPERATOR_DESC", ["GEMM"]),
        ("DML_OPERATOR_GEMM", ["GEMM"]),
        ("gather", ["GATHER"]),
        ("identity", ["ACTIVATION_IDENTITY", "ELEMENT_WISE_IDENTITY"]),
        ("ReduceLogSumExp", ["REDUCE"]),
    ],
)
def test_operators_are_found_by_the_names_of_each_standard(name: str, operators: list[str]) -> None:
    assert list(named_operators(name)) == operators


def test_name_of_several_operators_is_ambiguous() -> None:
    with pytest.raises(AmbiguousOperatorError, match="ACTIVATION_SOFTMAX or ACTIVATION_SOFTMAX1"):
        one_operator("Softmax")


def test_the_error_for_an_unknown_name_suggests_a_similar_name() -> None:
    with pytest.raises(UnknownOperatorError, match="did you mean conv2d"):
        named_operators("conv2x")


def test_the_table_names_only_operators_of_the_catalogue() -> None:
    known = set(operator_names())
    named = {o for names in standard_names().values() for ops in names.values() for o in ops}
    assert named <= known
    # The others, such as gradients and special cases, have no name in ONNX or WebNN.
    assert len(named) > 120


def test_every_operator_has_a_family_and_so_have_graphs() -> None:
    known = families()
    assert {*operator_names(), GRAPHS} == known.keys()
    assert OTHER not in known.values()
