"""Convert ONNX's node tests into cases.

`schemas/translation/onnx.yaml` translates the case's operator back into the test's node.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dmlconf.cases.model import Case
from tests.backends.onnxruntime.node_cases import (
    element_wise,
    movement,
    normalization,
    products,
    recurrent,
    reductions,
    windows,
)
from tests.backends.onnxruntime.node_cases.building import Conversion
from tests.backends.onnxruntime.node_cases.node_tests import NodeTest
from tests.backends.stated_cases import NoCaseError

__all__ = ["as_case"]

_CONVERSIONS: Final[Mapping[str, Conversion]] = {
    **element_wise.CONVERSIONS,
    **movement.CONVERSIONS,
    **normalization.CONVERSIONS,
    **products.CONVERSIONS,
    **recurrent.CONVERSIONS,
    **reductions.CONVERSIONS,
    **windows.CONVERSIONS,
}


def as_case(test: NodeTest) -> Case:
    """Return the case that expresses a test, or raise NoCaseError."""
    conversion = _CONVERSIONS.get(test.operation)
    if conversion is None:
        raise NoCaseError("an operator that is not made into cases", test.operation)
    return conversion(test)
