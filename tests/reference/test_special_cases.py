"""Operators that are special cases of others have no functions, and compute what the others do.

The tested code is in `dmlconf/catalogue/special_cases.py`, `dmlconf/reference/evaluation.py` and
`dmlconf/permitted/functions.py`.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.reference.evaluation import MissingFunction, reference_function
from dmlconf.tensors.datatypes import DataType
from tests.each import for_each
from tests.reference.functions import function_of

SPECIAL = [name for name in operator_names() if operator(name).specialises is not None]


@for_each(SPECIAL)
def test_a_special_case_has_no_function_of_its_own(name: str) -> None:
    general = operator(name)
    while general.specialises is not None:
        general = operator(general.specialises.operator)
    assert not hasattr(import_module(f"dmlconf.reference.{general.family}"), name.lower())
    permitted = f"dmlconf.permitted.{general.family}"
    if find_spec(permitted) is not None:
        for part in ("error_scale", "interval", "candidates"):
            assert not hasattr(import_module(permitted), f"{name.lower()}_{part}")


def test_common_fields_are_passed_on_and_constants_added() -> None:
    """TOP_K is TOP_K1 with the constant DECREASING as its AxisDirection."""
    values = np.array([[3, 1, 2]], np.int32)
    outputs = TensorDesc(DataType.INT32, (1, 2)), TensorDesc(DataType.UINT32, (1, 2))
    actual = reference_function("TOP_K")(values, *outputs, Axis=1, K=2)
    assert [part.tolist() for part in actual] == [[[3, 2]], [[0, 2]]]


def test_fields_that_only_the_general_operator_has_are_computed() -> None:
    """ACTIVATION_HARDMAX is ACTIVATION_HARDMAX1 along the last axis."""
    values = np.array([[1, 2], [3, 4]], np.float32)
    actual = reference_function("ACTIVATION_HARDMAX")(
        InputTensor=values, OutputTensor=TensorDesc(DataType.FLOAT32, (2, 2))
    )
    assert actual.tolist() == [[0, 1], [0, 1]]


def test_special_cases_of_special_cases_are_followed() -> None:
    """UPSAMPLE_2D specialises RESAMPLE, which specialises RESAMPLE1, and so on to RESAMPLE3."""
    values = np.array([[[[1, 2]]]], np.float32)
    actual = reference_function("UPSAMPLE_2D")(
        InputTensor=values,
        OutputTensor=TensorDesc(DataType.FLOAT32, (1, 1, 2, 4)),
        ScaleSize={"Width": 2, "Height": 2},
        InterpolationMode="NEAREST_NEIGHBOR",
    )
    assert actual.tolist() == [[[[1, 1, 2, 2], [1, 1, 2, 2]]]]


def test_a_missing_function_is_named_after_the_general_operator() -> None:
    with pytest.raises(MissingFunction, match="the interval of RESAMPLE3"):
        function_of("RESAMPLE1", "interval")
