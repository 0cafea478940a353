"""Read ONNX's tests of single nodes from the package onnx: attributes, inputs and outputs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import defs, helper, numpy_helper

from dmlconf.tensors.datatypes import Array
from tests.backends.stated_cases import NoCaseError

__all__ = ["NodeTest", "node_tests"]


@dataclass(frozen=True, slots=True)
class NodeTest:
    """A test of one node, with its attributes or their defaults, and the expected outputs."""

    name: str
    operation: str
    attributes: Mapping[str, Any]
    inputs: Sequence[Array | None]
    outputs: Sequence[Array]

    def input(self, index: int) -> Array:
        """Return an input; raise NoCaseError if it is absent."""
        array = self.optional(index)
        if array is None:
            raise NoCaseError("an input that is absent")
        return array

    def optional(self, index: int) -> Array | None:
        return self.inputs[index] if index < len(self.inputs) else None

    @property
    def axis(self) -> int:
        """The attribute `axis`, which may be negative, as a number from 0."""
        return int(self.attributes["axis"]) % self.input(0).ndim


def node_tests() -> Iterator[NodeTest]:
    """Yield the package's tests of one node of ONNX's own domain."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(action="ignore"):  # Some casts overflow, as ONNX intends.
        tests = list(collect_testcases(None))
    for test in tests:
        nodes = test.model.graph.node
        if len(nodes) == 1 and nodes[0].domain in ("", "ai.onnx") and test.data_sets:
            inputs, outputs = test.data_sets[0]
            if all(isinstance(each, np.ndarray | np.generic) for each in (*inputs, *outputs)):
                # Tests with other values, such as sequences, have no case.
                yield _node_test(test.name, test.model, inputs, outputs)


def _node_test(
    name: str, model: onnx.ModelProto, inputs: Sequence[Any], outputs: Sequence[Any]
) -> NodeTest:
    [node] = model.graph.node
    tensors = {each.name: numpy_helper.to_array(each) for each in model.graph.initializer}
    tensors |= dict(zip((each.name for each in model.graph.input), inputs, strict=False))
    schema = defs.get_schema(node.op_type, model.opset_import[0].version, "")
    attributes = {
        key: helper.get_attribute_value(each.default_value)
        for key, each in schema.attributes.items()
        if each.default_value.name
    }
    attributes |= {each.name: helper.get_attribute_value(each) for each in node.attribute}
    return NodeTest(
        name,
        node.op_type,
        {key: v.decode() if isinstance(v, bytes) else v for key, v in attributes.items()},
        [np.asarray(tensors[each]) if each else None for each in node.input],
        [np.asarray(each) for each in outputs],
    )
