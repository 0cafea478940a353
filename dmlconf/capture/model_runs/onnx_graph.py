"""Make other forms of an ONNX model: with more tensors as outputs, or with a single node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dmlconf.capture.model_runs.onnx_sessions import ModelError
from dmlconf.extras import install_command
from dmlconf.limits import LARGEST_EDITED_MODEL
from dmlconf.tensors.datatypes import Array

__all__ = ["OnnxGraph", "OnnxNode", "read_graph"]

_CONSTANT_TYPES: Final = ("Constant",)
_SUFFIX: Final = "/seen-by-dmlconf"


@dataclass(frozen=True, slots=True)
class OnnxNode:
    """A node of a model.

    Attributes:
        name: the node's name, or else that of its first output, or else its type.
        operator: the type of the node, such as `Gemm`.
        inputs: the tensors that it reads, without optional ones that are absent.
        outputs: the tensors that it computes, likewise.
        index: its index in the model.
    """

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    index: int


class OnnxGraph:
    """The main graph of a model.

    Attributes:
        nodes: all nodes but Constant nodes, each after the nodes whose outputs it reads.
        constants: the names of initializers and of the outputs of Constant nodes.
    """

    nodes: tuple[OnnxNode, ...]
    constants: frozenset[str]

    def __init__(self, model: Any) -> None:
        """Take an `onnx.ModelProto`; `with_outputs` changes it and changes it back."""
        self._model = model
        graph = model.graph
        self.nodes = tuple(
            OnnxNode(
                node.name or next(iter(filter(None, node.output)), node.op_type),
                node.op_type,
                tuple(filter(None, node.input)),
                tuple(filter(None, node.output)),
                index,
            )
            for index, node in enumerate(graph.node)
            if node.op_type not in _CONSTANT_TYPES
        )
        constants = {each.name for each in graph.initializer}
        constants |= {each.values.name for each in graph.sparse_initializer}
        for node in graph.node:
            if node.op_type in _CONSTANT_TYPES:
                constants |= {*node.output}
        self.constants = frozenset(constants)

    def with_outputs(self, names: Sequence[str]) -> tuple[bytes, list[str]]:
        """Return the serialised model with these tensors as outputs too, and their names there.

        An Identity node makes each new output, since ONNX Runtime 1.24.4 cannot return the result
        of a Conv that it fuses with a Relu.
        """
        import onnx

        graph = self._model.graph
        counts = len(graph.node), len(graph.output)
        present = {each.name for each in graph.output}
        outputs = [name if name in present else f"{name}{_SUFFIX}" for name in names]
        for name, output in zip(names, outputs, strict=True):
            if name not in present:
                graph.node.append(onnx.helper.make_node("Identity", [name], [output], output))
                # ONNX Runtime infers the type itself.
                graph.output.append(onnx.ValueInfoProto(name=output))
        try:
            return bytes(self._model.SerializeToString()), outputs
        finally:
            del graph.node[counts[0] :]
            del graph.output[counts[1] :]

    def alone(self, node: OnnxNode, inputs: Mapping[str, Array]) -> bytes | None:
        """Return the serialised model of a node and its constants; None if the node has subgraphs.

        Args:
            inputs: the data of the tensors that it reads, without constants.
        """
        import onnx

        graph = self._model.graph
        proto = graph.node[node.index]
        if any(each.HasField("g") or each.graphs for each in proto.attribute):
            return None
        names = {*node.inputs}
        small = onnx.ModelProto(
            ir_version=self._model.ir_version,
            opset_import=self._model.opset_import,
            functions=self._model.functions,
        )
        small.graph.name = node.name
        feeding = (each for each in graph.node if each.op_type in _CONSTANT_TYPES)
        small.graph.node.extend([*(each for each in feeding if names & {*each.output}), proto])
        small.graph.initializer.extend(each for each in graph.initializer if each.name in names)
        small.graph.sparse_initializer.extend(
            each for each in graph.sparse_initializer if each.values.name in names
        )
        for name, value in inputs.items():
            kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
            info = onnx.helper.make_tensor_value_info(name, kind, value.shape)
            small.graph.input.append(info)
        small.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.outputs)
        return bytes(small.SerializeToString())

    def tensor_bytes(self, inputs: Mapping[str, Array]) -> dict[str, int]:
        """Return the bytes of each computed tensor whose sizes ONNX infers from the inputs' sizes.

        There are none if ONNX refuses the model.
        """
        import onnx

        copy = onnx.ModelProto()
        copy.CopyFrom(self._model)
        for each in copy.graph.input:
            if each.name in inputs:
                dimensions = each.type.tensor_type.shape.dim
                for dimension, size in zip(dimensions, inputs[each.name].shape, strict=False):
                    dimension.dim_value = size
        try:
            inferred = onnx.shape_inference.infer_shapes(copy, data_prop=True)
        except Exception:  # onnx raises many types.
            return {}  # Without sizes, a search takes fewer nodes at a time.
        return dict(_sizes([*inferred.graph.value_info, *inferred.graph.output]))


def _sizes(tensors: Sequence[Any]) -> Iterator[tuple[str, int]]:
    import onnx

    for each in tensors:
        kind = each.type.tensor_type
        sizes = [size.dim_value for size in kind.shape.dim if size.HasField("dim_value")]
        if kind.elem_type and kind.HasField("shape") and len(sizes) == len(kind.shape.dim):
            total = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type).itemsize
            for size in sizes:
                total *= size
            yield each.name, total


def read_graph(path: Path) -> OnnxGraph:
    """Read the graph of an ONNX model, without the data of weights in other files.

    Raises:
        ModelError: the model cannot be read, is too large, or the package `onnx` is missing.
    """
    try:
        import onnx
    except ImportError as error:
        raise ModelError(
            f"the package onnx is missing ({error}); install it with: {install_command('directml')}"
        ) from error
    try:
        size = path.stat().st_size
        if size > LARGEST_EDITED_MODEL:
            raise ModelError(f"{path} holds {size:,} bytes; at most {LARGEST_EDITED_MODEL:,}")
        return OnnxGraph(onnx.load(str(path), load_external_data=False))
    except ModelError:
        raise
    except Exception as error:  # Protobuf and onnx raise several kinds.
        raise ModelError(f"{path} cannot be read as an ONNX model: {error}") from error
