"""An ONNX graph that is built node by node."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.helper as make
import onnx.numpy_helper as convert

from dmlconf.tensors.datatypes import Array

__all__ = ["Graph"]

OPSET = 21


class Graph:
    """Nodes, the arrays that feed them, and constants."""

    def __init__(self) -> None:
        """Start empty."""
        self._nodes: list[Any] = []
        self._constants: list[Any] = []
        self._feeds: dict[str, Array] = {}

    def feed(self, array: Array) -> str:
        """Return the name of an input with these values."""
        name = f"input{len(self._feeds)}"
        self._feeds[name] = np.ascontiguousarray(array)
        return name

    def constant(self, array: Any) -> str:
        """Return the name of a constant."""
        name = f"constant{len(self._constants)}"
        self._constants.append(convert.from_array(np.asarray(array), name))
        return name

    def add(self, node: str, *inputs: str, **attributes: Any) -> str:
        """Return the name of the first output of a new node."""
        name = f"value{len(self._nodes)}"
        self._nodes.append(make.make_node(node, list(inputs), [name], **attributes))
        return name

    def model(self, output: str) -> tuple[Any, dict[str, Array]]:
        """Return the model with the output of this name, and the arrays of its inputs."""
        inputs = [
            make.make_tensor_value_info(
                name, make.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in self._feeds.items()
        ]
        outputs = [make.make_empty_tensor_value_info(output)]
        graph = make.make_graph(self._nodes, "layer", inputs, outputs, self._constants)
        opsets = [make.make_opsetid("", OPSET)]
        return make.make_model(graph, opset_imports=opsets, ir_version=10), self._feeds
