"""Devices may replace NaN, subnormal and very large numbers in functions by other numbers.

Direct3D permits it, such as for ATAN of NaN.

The tested code is in `dmlconf/permitted/activation/softmax.py`, and in
`dmlconf/permitted/element_wise/`: in `trigonometry.py`, `exponential.py`, `modulus.py` and
`power.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.precision.rules import undefined
from dmlconf.reference.evaluation import reference_function
from dmlconf.tensors.datatypes import Array, DataType
from tests.permitted.intervals import hull, is_permitted
from tests.reference.functions import function_of

NAN, INFINITY = np.nan, np.inf
LARGEST = float(np.finfo(np.float32).max)
SUBNORMAL = 1e-45

OF_CANDIDATES = (
    "ACTIVATION_LOG_SOFTMAX",
    "ELEMENT_WISE_ATAN_YX",
    "ELEMENT_WISE_MODULUS_TRUNCATE",
    "ELEMENT_WISE_TAN",
)
"""Operators whose rule is `one of`; the others have the rule `interval`."""


def ends_of(operator: str, **arguments: Any) -> tuple[Array, Array]:
    """Return the least and the greatest permitted result of each element."""
    tensors = {
        name: np.array(value, np.float32) if isinstance(value, list) else value
        for name, value in arguments.items()
    }
    size = max(tensor.size for tensor in tensors.values() if isinstance(tensor, np.ndarray))
    output = TensorDesc(DataType.FLOAT32, (size,))
    part = "candidates" if operator in OF_CANDIDATES else "interval"
    ends = function_of(operator, part)(OutputTensor=output, **tensors)
    return hull([ends] if part == "interval" else ends)


@pytest.mark.parametrize(
    ("operator", "arguments", "open_elements"),
    [
        ("ELEMENT_WISE_ATAN", {"InputTensor": [NAN, 1, INFINITY], "ScaleBias": None}, [1, 0, 0]),
        ("ELEMENT_WISE_ACOSH", {"InputTensor": [-1e5, -7, 1, 7], "ScaleBias": None}, [1, 0, 0, 0]),
        (
            "ELEMENT_WISE_ATAN_YX",
            {"ATensor": [NAN, 1, SUBNORMAL, SUBNORMAL], "BTensor": [1, NAN, 0, 1]},
            [1, 1, 1, 0],
        ),
        (
            "ELEMENT_WISE_MODULUS_TRUNCATE",
            {"ATensor": [LARGEST, LARGEST, 7], "BTensor": [SUBNORMAL, 1e30, 2]},
            [1, 1, 0],
        ),
        (
            "ELEMENT_WISE_POW",
            {"InputTensor": [-3, -3, 3], "ExponentTensor": [1e30, 3, 1e30], "ScaleBias": None},
            [1, 0, 0],
        ),
        ("ACTIVATION_LOG_SOFTMAX", {"InputTensor": [[NAN, 1], [1, 2]]}, [[0, 1], [0, 0]]),
    ],
)
def test_only_replaceable_numbers_permit_any_result(
    operator: str, arguments: dict[str, Any], open_elements: list[Any]
) -> None:
    assert (
        undefined(*ends_of(operator, **arguments)).tolist()
        == np.array(open_elements, bool).tolist()
    )


def test_log_of_a_subnormal_may_be_anything_below_minus_87() -> None:
    """The logarithm of the least normal number, 1.2e-38, is -87.3."""
    lowest, highest = ends_of("ELEMENT_WISE_LOG", InputTensor=[SUBNORMAL, 2], ScaleBias=None)
    assert lowest[0] == -INFINITY
    assert -88 < highest[0] < -87
    assert 0.693 < lowest[1] <= highest[1] < 0.694


def test_nan_in_a_line_opens_log_softmax_of_numbers_only() -> None:
    line = np.array([[NAN, -INFINITY, 3, 1]], np.float32)
    output = TensorDesc(DataType.FLOAT32, line.shape)
    right = reference_function("ACTIVATION_LOG_SOFTMAX")(line, output)
    candidates = function_of("ACTIVATION_LOG_SOFTMAX", "candidates")(line, output)
    for value, permitted in (
        (NAN, [True, True, True, True]),
        (-INFINITY, [False, True, True, True]),
        (46.0, [False, False, True, True]),
    ):
        actual = np.full_like(line, value)
        assert is_permitted(actual, right, *candidates).tolist() == [permitted]


def test_tangent_next_to_a_pole_is_large_of_either_sign() -> None:
    """The sine and the cosine may be off by 0.0008, and (1 - 0.0008) / 0.0008 is 1,249."""
    tensor = np.full(6, np.pi / 2, np.float32)
    output = TensorDesc(DataType.FLOAT32, (6,))
    right = reference_function("ELEMENT_WISE_TAN")(tensor, output, None)
    candidates = function_of("ELEMENT_WISE_TAN", "candidates")(tensor, output, None)
    actual = np.array([1e9, -1e9, INFINITY, 1250, 1248, 0], np.float32)
    permitted = [True, True, True, True, False, False]
    assert is_permitted(actual, right, *candidates).tolist() == permitted
