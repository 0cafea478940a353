"""Make ONNX models from programs, which are translated cases, and find the operators of models."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.translation.program import BOOL, NotExpressibleError, Program, Step
from dmlconf.translation.tables import Table, table

__all__ = ["MICROSOFT", "model_of", "operators_of"]

MICROSOFT: Final = "com.microsoft"

_TYPES: Final[Mapping[str, int]] = {
    BOOL: TensorProto.BOOL,
    DataType.FLOAT64: TensorProto.DOUBLE,
    DataType.FLOAT32: TensorProto.FLOAT,
    DataType.FLOAT16: TensorProto.FLOAT16,
    **{
        each: int(getattr(TensorProto, each))
        for each in DataType
        if not each.is_float and each.bits >= 8
    },
}
"""ONNX's number of each data type of 8 bits or more, and of Booleans."""

_FLOATS: Final = frozenset({"alpha"})
"""The floating-point attributes of com.microsoft's operators, which onnx does not describe."""


def model_of(program: Program, opset: int, owned: Mapping[str, Array]) -> onnx.ModelProto:
    """Return a program as a model.

    Args:
        opset: the version of ONNX's operator set.
        owned: the data of the inputs that become initializers, by name.

    Raises:
        NotExpressibleError: that version of the operator set lacks an operator of the program.
    """
    known = table("onnx")
    nodes = [_node(step, known, opset) for step in program.steps]
    inputs = [
        helper.make_tensor_value_info(name, _TYPES[each.data_type], each.sizes)
        for name, each in program.inputs.items()
        if name not in owned
    ]
    # Sizes of outputs are not declared; the returned arrays are checked later.
    outputs = [
        helper.make_tensor_value_info(name, _TYPES[each.data_type], None)
        for name, each in program.outputs.items()
    ]
    constants = {**program.constants, **owned}
    initializers = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    graph = helper.make_graph(nodes, "case", inputs, outputs, initializers)
    sets = [helper.make_opsetid("", opset), helper.make_opsetid(MICROSOFT, 1)]
    model = helper.make_model(graph, opset_imports=sets, producer_name="dmlconf")
    model.ir_version = helper.find_min_ir_version_for(sets, ignore_unknown=True)
    return model


def operators_of(model: onnx.ModelProto) -> frozenset[str]:
    """Return the operators of a model, and those by which ONNX defines them.

    A model of Clip with both limits has Clip, Less and Where.
    """
    nodes = model.graph.node
    opset = model.opset_import[0].version
    bodies = (each for node in nodes if not node.domain for each in _definition(node, opset))
    return frozenset({*(node.op_type for node in nodes), *bodies})


def _definition(node: onnx.NodeProto, opset: int) -> list[str]:
    """Return the operators of the ONNX function that defines an operator for FLOAT32, if any."""
    schema = onnx.defs.get_schema(node.op_type, opset, "")
    if schema.has_function:
        return [each.op_type for each in schema.function_body.node]
    if not schema.has_context_dependent_function:
        return []
    any_type = helper.make_tensor_type_proto(TensorProto.FLOAT, None).SerializeToString()
    types = [any_type if name else b"" for name in node.input]
    body = schema.get_context_dependent_function(node.SerializeToString(), types)
    return [each.op_type for each in onnx.FunctionProto.FromString(body).node]


def _node(step: Step, known: Table, opset: int) -> onnx.NodeProto:
    domain = known.domains.get(step.operation, "")
    node = helper.make_node(step.operation, step.inputs, step.outputs, domain=domain)
    floats = _float_attributes(step.operation, domain, opset)
    node.attribute.extend(
        helper.make_attribute(name, _value(value, is_float=name in floats))
        for name, value in step.attributes.items()
    )
    return node


@cache
def _float_attributes(operation: str, domain: str, opset: int) -> frozenset[str]:
    """Return the floating-point attributes, whose values in a desc may be integers."""
    if domain:
        return _FLOATS
    try:
        schema = onnx.defs.get_schema(operation, opset, domain)
    except onnx.defs.SchemaError as error:
        message = f"version {opset} of ONNX's operator set has no {operation}"
        raise NotExpressibleError(message) from error
    kinds = onnx.defs.OpSchema.AttrType
    return frozenset(
        name
        for name, attribute in schema.attributes.items()
        if attribute.type in (kinds.FLOAT, kinds.FLOATS)
    )


def _value(value: Any, *, is_float: bool) -> Any:
    if isinstance(value, str) and value in _TYPES:
        return _TYPES[value]
    if isinstance(value, tuple | list):
        return [float(each) for each in value] if is_float else list(value)
    return float(value) if is_float else int(value) if isinstance(value, bool) else value
