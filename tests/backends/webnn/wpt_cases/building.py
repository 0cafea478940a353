"""Build cases of DirectML's operators from the tensors of WebNN's tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array, DataType
from tests.backends.stated_cases import stated_case
from tests.backends.webnn.wpt_cases.wpt_tests import WptTest

__all__ = ["Conversion", "case_of", "channels_first", "operands"]

Conversion = Callable[[WptTest], Case]


_FIELDS: Final[Mapping[str, Sequence[str]]] = {
    "a": ("ATensor",),
    "b": ("BTensor", "ExponentTensor"),
    "c": ("CTensor",),
    "condition": ("ConditionTensor",),
    "falseValue": ("BTensor",),
    "filter": ("FilterTensor",),
    "indices": ("IndicesTensor",),
    "input": ("InputTensor",),
    "mean": ("MeanTensor",),
    "slope": ("SlopeTensor",),
    "trueValue": ("ATensor",),
    "updates": ("UpdatesTensor",),
    "variance": ("VarianceTensor",),
}
"""DirectML's fields for each argument of WebNN."""

_NEVER_OWNED: Final = ("GRU", "LSTM")
"""Operators whose inputs DirectML does not take as OWNED_BY_DML."""


def case_of(
    test: WptTest,
    operator: str,
    inputs: Mapping[str, Array | None] | None = None,
    outputs: Mapping[str, Array] | None = None,
    types: Mapping[str, DataType] = MappingProxyType({}),
    **fields: Any,
) -> Case:
    """Return a case of one of DirectML's operators, with tensors by field.

    By default, the test's `input` is InputTensor, and its first output is OutputTensor. `types` are
    the data types of tensors with 4 bits for an element.
    """
    inputs = {"InputTensor": test.input("input")} if inputs is None else inputs
    outputs = {"OutputTensor": test.output()} if outputs is None else outputs
    constant = [] if operator in _NEVER_OWNED else filter(test.is_constant, test.arguments)
    owned = {field for name in constant for field in _FIELDS.get(name, ())} & inputs.keys()
    name = f"{test.file}/{test.name}"
    return stated_case("wpt", name, operator, inputs, outputs, fields, types, owned)


def operands(test: WptTest, **arguments: str) -> dict[str, Array]:
    """Return inputs with the output's sizes; `ATensor="a"` names WebNN's argument of a field."""
    sizes = test.output().shape
    return {f: np.broadcast_to(test.input(name), sizes) for f, name in arguments.items()}


def channels_first(array: Array, layout: str) -> Array:
    """Return an image in DirectML's layout, NCHW; `layout` is "nchw" or "nhwc"."""
    return array.transpose(0, 3, 1, 2) if layout == "nhwc" else array
