"""Translate a case to a program of a target, by evaluating the formulas of the target's table.

A call of one of the target's operators becomes a step: `OutputTensor = Relu(InputTensor)`. Other
functions that give a tensor are in the table or in `_MAKERS`. Functions that give an attribute are
in `values` or `expressions`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import FieldKind
from dmlconf.expressions import FUNCTIONS, Expression, ExpressionError, Namespace
from dmlconf.graphs.model import Constant, Node
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.layout import element_offsets, is_packed, packed_strides
from dmlconf.translation.program import BOOL, NotExpressibleError, Program, Step, TensorType
from dmlconf.translation.tables import Table, table
from dmlconf.translation.values import VALUES, bound_as_taken

__all__ = ["translated"]

ABSENT: Final = ""
"""The name of an absent optional tensor."""

_FOUR_BITS: Final = 4


def translated(case: Case, target: str) -> Program:
    """Return a case as a program of a target.

    Raises:
        NotExpressibleError: the target has no counterpart of the case, a formula of the table
            divides by a field that is 0, or a tensor has 4-bit elements.
        ExpressionError: a condition or formula of the table cannot be evaluated.
    """
    if isinstance(case.expectation, ExpectedRejection):
        raise NotExpressibleError("a desc that DirectML must refuse has no counterpart")
    builder = _Builder(table(target))
    tensors = {**case.graph.inputs, **case.graph.outputs}
    types = {name: _type(each) for name, each in tensors.items()}
    names = case.input_names()
    if case.nodes:
        _add_graph(builder, case)
    else:
        builder.add(case.operator_name, case.desc, {name: name for name in tensors})
    return Program(
        inputs={name: types[name] for name in names},
        outputs={name: types[name] for name in case.outputs()},
        constants=builder.constants,
        steps=tuple(builder.steps),
        owned=frozenset(name for name in names if tensors[name].Owned),
    )


def _type(tensor: TensorDesc) -> TensorType:
    _decline_four_bits(tensor)
    return TensorType(tensor.DataType, tensor.Sizes)


def _decline_four_bits(tensor: TensorDesc) -> None:
    if tensor.DataType.bits == _FOUR_BITS:
        raise NotExpressibleError("tensors of 4-bit elements are not translated")


def _add_graph(builder: _Builder, case: Case) -> None:
    """Add the nodes of a graph, and steps where a node reads a tensor in another layout."""
    graph = case.graph
    sources, nodes = graph.sources(), graph.by_name
    for node in graph.in_order():
        if isinstance(node, Constant):
            [name] = node.outputs
            _decline_four_bits(node.tensor)
            builder.constants[f"{node.name}/{name}"] = node.data
            continue
        assert isinstance(node, Node)
        slots: dict[str, str] = {}
        for name, tensor in node.inputs.items():
            source = sources[node.name, name]
            if isinstance(source, str):
                slots[name] = builder.as_read(source, graph.inputs[source], tensor)
            else:
                producer = nodes[source[0]].outputs[source[1]]
                slots[name] = builder.as_read("/".join(source), producer, tensor)
        slots |= {name: f"{node.name}/{name}" for name in node.outputs}
        for tensor in (*node.inputs.values(), *node.outputs.values()):
            _decline_four_bits(tensor)
        builder.add(node.operator_name, node.desc, slots)
    for output, (name, tensor_name) in graph.output_sources().items():
        producer = nodes[name].outputs[tensor_name]
        read = builder.as_read(f"{name}/{tensor_name}", producer, graph.outputs[output])
        builder.step("Identity" if builder.table.target == "onnx" else "identity", [read], [output])


class _Builder:
    """Collects the steps and constants of a program."""

    def __init__(self, target: Table) -> None:
        self.table = target
        self.steps: list[Step] = []
        self.constants: dict[str, Array] = {}
        self._count = 0

    def fresh(self) -> str:
        self._count += 1
        return f"#{self._count}"

    def constant(self, values: Array) -> str:
        name = self.fresh()
        self.constants[name] = values
        return name

    def step(
        self,
        operation: str,
        inputs: list[str],
        outputs: list[str],
        attributes: Mapping[str, Any] | None = None,
        operands: Mapping[str, str] | None = None,
    ) -> None:
        while inputs and inputs[-1] == ABSENT:
            inputs = inputs[:-1]
        made = Step(operation, tuple(inputs), tuple(outputs), attributes or {}, operands or {})
        self.steps.append(made)

    def reshaped(self, name: str, sizes: tuple[int, ...]) -> str:
        """Add a step that reshapes a tensor, and return the name of the result."""
        result = self.fresh()
        if self.table.target == "onnx":
            self.step("Reshape", [name, self.constant(np.array(sizes, np.int64))], [result])
        else:
            self.step("reshape", [name], [result], {"newShape": sizes})
        return result

    def as_read(self, name: str, producer: TensorDesc, consumer: TensorDesc) -> str:
        """Return the name of a tensor as a consumer reads it; add steps if the layouts differ.

        Raises:
            NotExpressibleError: the data types differ, or the consumer reads elements that the
                producer does not write.
        """
        if producer.DataType is not consumer.DataType:
            raise NotExpressibleError("an edge that reads a tensor with another data type")
        both_plain = _is_plain(producer) and _is_plain(consumer)
        if both_plain and producer.ElementCount == consumer.ElementCount:
            same = producer.Sizes == consumer.Sizes
            return name if same else self.reshaped(name, consumer.Sizes)
        if producer.Strides == consumer.Strides and producer.Sizes == consumer.Sizes:
            return name
        written = {int(at): n for n, at in enumerate(_offsets(producer))}
        try:
            indices = [written[int(at)] for at in _offsets(consumer)]
        except KeyError:
            message = "an edge that reads elements which its producer does not write"
            raise NotExpressibleError(message) from None
        flat = self.reshaped(name, (producer.ElementCount,))
        picked = self.fresh()
        operation = "Gather" if self.table.target == "onnx" else "gather"
        self.step(
            operation, [flat, self.constant(np.array(indices, np.int64))], [picked], {"axis": 0}
        )
        return self.reshaped(picked, consumer.Sizes)

    def add(self, operator: str, desc: Desc, slots: Mapping[str, str]) -> None:
        """Add the steps of an operator.

        Args:
            slots: the names of the operator's tensors in the program.

        Raises:
            NotExpressibleError: the target has no counterpart of the desc, or a formula divides by
                a field that is 0.
        """
        entry = self.table.entries[operator]
        if entry.like:
            general = catalogue.operator(operator).specialises
            assert general is not None
            names = catalogue.operator(operator).names(desc)
            computed = {
                name: _evaluated(each, names, operator) for name, each in general.computed.items()
            }
            self.add(entry.like, {**desc, **general.constants, **computed}, slots)
            return
        names = catalogue.operator(operator).names(desc)
        for form in entry.forms:
            if form.when is None or _evaluated(form.when, names, operator):
                break
        else:
            raise NotExpressibleError(f"{self.table.title} has no counterpart of this {operator}")
        if form.declined:
            raise NotExpressibleError(f"{operator}: {form.declined}")
        wide = form.wide or desc.get("ScaleBias") is not None
        if wide and any(map(_is_half, desc.values())):
            self._add_wide(operator, desc, slots)
            return
        scope = _Scope(self, operator, names, slots)
        for statement in form.statements:
            scope.assign(statement)

    def _add_wide(self, operator: str, desc: Desc, slots: Mapping[str, str]) -> None:
        """Add the steps of an operator in FLOAT32 instead of FLOAT16, and casts around them."""
        wide = {name: _widened(value) for name, value in desc.items()}
        inner = dict(slots)
        outputs = {}
        for name, field, tensor in tensors_of(catalogue.operator(operator), desc):
            if tensor.DataType is not DataType.FLOAT16 or name not in slots:
                continue
            inner[name] = self.fresh()
            if field.kind is FieldKind.INPUT:
                self.cast(slots[name], inner[name], DataType.FLOAT32)
            else:
                outputs[name] = inner[name]
        self.add(operator, wide, inner)
        for name, source in outputs.items():
            self.cast(source, slots[name], DataType.FLOAT16)

    def cast(self, source: str, result: str, kind: str) -> None:
        onnx = self.table.target == "onnx"
        self.step("Cast" if onnx else "cast", [source], [result], {"to" if onnx else "type": kind})


def _is_half(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(map(_is_half, value))
    return isinstance(value, TensorDesc) and value.DataType is DataType.FLOAT16


def _widened(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_widened, value))
    return replace(value, DataType=DataType.FLOAT32) if _is_half(value) else value


def _is_plain(tensor: TensorDesc) -> bool:
    return tensor.Strides is None or is_packed(tensor.Sizes, tensor.Strides)


def _offsets(tensor: TensorDesc) -> Array:
    strides = tensor.Strides or packed_strides(tensor.Sizes)
    return element_offsets(tensor.Sizes, strides).ravel()


@cache
def _expression(text: str) -> Expression:
    return Expression(text)


def _evaluated(expression: Expression, names: Namespace, operator: str) -> Any:
    """Return the value of a condition or formula of an operator.

    Raises:
        NotExpressibleError: it divides by 0.
        ExpressionError: it cannot be evaluated for another reason.
    """
    try:
        return expression.evaluate(names)
    except ExpressionError as error:
        if isinstance(error.__cause__, ZeroDivisionError):
            divisors = " or ".join(_divisors(expression.source))
            raise NotExpressibleError(f"{operator}: division by {divisors}, which is 0") from error
        raise ExpressionError(f"{operator}: {error}") from error


def _divisors(source: str) -> list[str]:
    """Return what an expression divides by, without numbers."""
    divisors = [
        ast.unparse(node.right)
        for node in ast.walk(ast.parse(source.strip(), mode="eval"))
        if isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Div | ast.FloorDiv | ast.Mod)
        and not isinstance(node.right, ast.Constant)
    ]
    return [*dict.fromkeys(divisors)]


class _Scope:
    """Evaluates the formulas of an operator for one desc."""

    def __init__(
        self, builder: _Builder, operator: str, names: Namespace, slots: Mapping[str, str]
    ) -> None:
        self._builder = builder
        self._operator = operator
        self._names = names
        self._tensors = dict(slots)
        self._fields = {f.name: f for f in catalogue.operator(operator).fields}

    def assign(self, statement: ast.Assign) -> None:
        """Add the steps of a formula such as `OutputTensor = Relu(InputTensor)`."""
        [target] = statement.targets
        targets = [*target.elts] if isinstance(target, ast.Tuple) else [target]
        outputs = [name for each in targets for name in self._targets(each)]
        if all(name == ABSENT for name in outputs):
            return
        value = statement.value
        while isinstance(value, ast.IfExp):
            value = value.body if self._value(value.test) else value.orelse
        if isinstance(value, ast.Call) and self._is_operation(value):
            self._call(value, outputs)
            return
        [output] = outputs
        if self._is_field(targets[0]) and isinstance(value, ast.Call) and _is_cast(value):
            self._cast(value, output)
            return
        source = self._tensor(value)
        if self._is_field(targets[0]):
            identity = "Identity" if self._builder.table.target == "onnx" else "identity"
            self._builder.step(identity, [source], [output])
        else:
            assert isinstance(targets[0], ast.Name)
            self._tensors[targets[0].id] = source

    def _is_field(self, target: ast.expr) -> bool:
        return isinstance(target, ast.Name) and target.id in self._fields

    def _targets(self, target: ast.expr) -> list[str]:
        """Return the names of the tensors that a name on the left of `=` stands for."""
        assert isinstance(target, ast.Name)
        field = self._fields.get(target.id)
        if field is None:
            self._tensors[target.id] = self._builder.fresh()
            return [self._tensors[target.id]]
        several = [n for n in self._tensors if n.startswith(f"{target.id}[")]
        if several:
            return [self._tensors[name] for name in several]
        return [self._tensors.get(target.id, ABSENT)]

    def _is_operation(self, call: ast.Call) -> bool:
        assert isinstance(call.func, ast.Name)
        name = call.func.id
        return name not in _MAKERS and name not in self._builder.table.functions

    def _call(self, call: ast.Call, outputs: list[str]) -> None:
        assert isinstance(call.func, ast.Name)
        inputs = [name for argument in call.args for name in self._several(argument)]
        attributes: dict[str, Any] = {}
        operands: dict[str, str] = {}
        for keyword in call.keywords:
            assert keyword.arg is not None
            if self._names_tensor(keyword.value):
                tensor = self._tensor(keyword.value)
                if tensor != ABSENT:
                    operands[keyword.arg] = tensor
            else:
                value = self._value(keyword.value)
                if value is not None:
                    attributes[keyword.arg] = value
        self._builder.step(call.func.id, inputs, outputs, attributes, operands)

    def _names_tensor(self, node: ast.expr) -> bool:
        """Return whether a keyword argument is a tensor, and not an attribute."""
        if isinstance(node, ast.Name):
            known = node.id in self._tensors
            field = self._fields.get(node.id)
            return known or (field is not None and field.kind is FieldKind.INPUT)
        if isinstance(node, ast.IfExp):
            return self._names_tensor(node.body) or self._names_tensor(node.orelse)
        return (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id not in FUNCTIONS
            and node.func.id not in VALUES
        )

    def _several(self, node: ast.expr) -> list[str]:
        """Return the names of an argument's tensors; a field with an array has several."""
        if isinstance(node, ast.Name) and node.id not in self._tensors:
            several = [name for name in self._tensors if name.startswith(f"{node.id}[")]
            if several:
                return [self._tensors[name] for name in several]
        return [self._tensor(node)]

    def _tensor(self, node: ast.expr) -> str:
        """Add the steps of a formula; return the name of its tensor, or `ABSENT`."""
        if isinstance(node, ast.IfExp):
            return self._tensor(node.body if self._value(node.test) else node.orelse)
        if isinstance(node, ast.Constant) and node.value is None:
            return ABSENT
        if isinstance(node, ast.Name):
            return self._tensors.get(node.id, ABSENT)
        if isinstance(node, ast.Subscript):
            return self._tensors.get(ast.unparse(node), ABSENT)
        assert isinstance(node, ast.Call), ast.unparse(node)
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        if name in _MAKERS:
            return _MAKERS[name](self, node)
        function = self._builder.table.functions.get(name)
        if function is None:
            output = self._builder.fresh()
            self._call(node, [output])
            return output
        return self._shared(function.parameters, function.body, node)

    def _shared(self, parameters: tuple[str, ...], body: ast.expr, node: ast.Call) -> str:
        """Evaluate a shared formula; parameters in capitals are values, and others are tensors."""
        tensors, names = dict(self._tensors), dict(self._names)
        values: dict[str, Any] = {}
        for parameter, argument in zip(parameters, node.args, strict=True):
            if parameter.isupper():
                values[parameter] = self._value(argument)
            else:
                tensors[parameter] = self._tensor(argument)
        kept = self._tensors, self._names
        self._tensors, self._names = tensors, {**names, **values}
        try:
            return self._tensor(body)
        finally:
            self._tensors, self._names = kept

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            compute = VALUES.get(node.func.id)
            if compute is not None:
                return compute(self._names, *map(self._value, node.args))
        return _evaluated(_expression(ast.unparse(node)), self._names, self._operator)

    def int64(self, node: ast.Call) -> str:
        """`int64(Axes)`: an INT64 constant, with one dimension for a list."""
        return self._builder.constant(np.array(self._value(node.args[0]), np.int64))

    def scalar(self, node: ast.Call) -> str:
        """`scalar(Min, InputTensor.DataType)`: a constant without dimensions."""
        value, data_type = (self._value(each) for each in node.args)
        return self._builder.constant(_number(value, data_type))

    def bound(self, node: ast.Call) -> str:
        """`bound(Max)`: a constant, the bound in InputTensor's type as DirectML takes it."""
        number = bound_as_taken(self._names, self._value(node.args[0]))
        return self._builder.constant(number)

    def wrapped(self, node: ast.Call) -> str:
        """`wrapped(ValueDelta, 'UINT8')`: as `scalar`, but integers keep only their low bits."""
        value, data_type = (self._value(each) for each in node.args)
        kind = DataType(data_type)
        if not kind.is_float:
            value = int(value) % (1 << kind.bits)
            return self._builder.constant(
                np.array(value, f"u{kind.dtype.itemsize}").view(kind.dtype)
            )
        return self._builder.constant(_number(value, data_type))

    def declined(self, node: ast.Call) -> str:
        """`declined('a real scale of integers')`: the case is declined for this reason."""
        raise NotExpressibleError(f"{self._operator}: {self._value(node.args[0])}")

    def array(self, node: ast.Call) -> str:
        """`constant(Scales, 'FLOAT32')`: a constant with one dimension."""
        values, data_type = (self._value(each) for each in node.args)
        return self._builder.constant(np.array(values, DataType(data_type).dtype))

    def shaped(self, node: ast.Call) -> str:
        """`shaped(x, OutputTensor.Sizes)`: the same elements in other dimensions."""
        tensor, sizes = self._tensor(node.args[0]), self._value(node.args[1])
        return tensor if tensor == ABSENT else self._builder.reshaped(tensor, tuple(sizes))

    def cast(self, node: ast.Call) -> str:
        """`to(x, 'BOOL')`: the elements in another data type."""
        return self._cast(node, self._builder.fresh())

    def _cast(self, node: ast.Call, output: str) -> str:
        tensor, data_type = self._tensor(node.args[0]), self._value(node.args[1])
        if tensor == ABSENT:
            return ABSENT
        self._builder.cast(tensor, output, BOOL if data_type == BOOL else DataType(data_type))
        return output

    def fused(self, node: ast.Call) -> str:
        """`fused(x)`: the activation that the desc's FusedActivation names, or x itself."""
        tensor = self._tensor(node.args[0])
        activation = self._names.get("FusedActivation")
        if activation is None:
            return tensor
        output: TensorDesc = self._names["OutputTensor"]
        plain = TensorDesc(output.DataType, output.Sizes)
        desc = {**activation, "InputTensor": plain, "OutputTensor": plain}
        operator = desc.pop("operator")
        result = self._builder.fresh()
        self._builder.add(operator, desc, {"InputTensor": tensor, "OutputTensor": result})
        return result


_MAKERS: Final[Mapping[str, Callable[[_Scope, ast.Call], str]]] = {
    "int64": _Scope.int64,
    "scalar": _Scope.scalar,
    "bound": _Scope.bound,
    "wrapped": _Scope.wrapped,
    "declined": _Scope.declined,
    "constant": _Scope.array,
    "shaped": _Scope.shaped,
    "to": _Scope.cast,
    "fused": _Scope.fused,
}
"""Functions that formulas may call, which return a tensor's name or decline the case."""


def _is_cast(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "to"


def _number(value: float, data_type: str) -> Array:
    kind = DataType(data_type)
    if not kind.is_float:
        if not kind.minimum <= value <= kind.maximum:
            raise NotExpressibleError(f"{value:g} as {kind}")
        value = int(value)
    with np.errstate(over="ignore"):
        return np.array(value, kind.dtype)
