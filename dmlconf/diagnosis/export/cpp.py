"""Write a case as a C++ program against DirectML.h that prints the wrong elements."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.cases.plans import Plan, plan
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import AttributeKind, Field, Operator
from dmlconf.diagnosis.export.buffers import Expected, buffer_bytes, expected_of, offsets_of
from dmlconf.graphs.model import Constant, GraphNode
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.scalar import scalar_bytes

__all__ = ["MOST_BYTES", "cpp_program"]

MOST_BYTES: Final = 1 << 18
"""The most bytes that a case's buffers should have, since larger programs are hard to compile.

`cpp_program` does not check this.
"""

_TEMPLATE: Final = Path(__file__).parent / "templates" / "case.cpp"
_PER_LINE: Final = 16
_NO_BUFFER: Final = "{nullptr, 0, nullptr, false, -1}"


def cpp_program(
    case: Case,
    title: str,
    *,
    metacommands: bool = True,
    half: bool = False,
    graph: bool = False,
    runs: int = 1,
) -> str:
    """Return the program's source.

    Args:
        case: the case, whose data are arrays.
        title: a line that says what the program shows.
        metacommands: whether the driver's own implementations of operators may be used.
        half: whether intermediate results may be FLOAT16.
        graph: whether an operator is compiled as a graph of one node.
        runs: how often the program runs the case; once if an output is written in place.
    """
    flags = [
        *([] if metacommands else ["DML_EXECUTION_FLAG_DISABLE_META_COMMANDS"]),
        *(["DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION"] if half else []),
    ]
    rejected = isinstance(case.expectation, ExpectedRejection)
    expected = {} if rejected else expected_of(case, half=half)
    inputs = {} if rejected else case.inputs()
    compiled = plan(case, as_graph=graph)
    lines = [
        *_nodes(case.graph.nodes),
        *_edges(compiled),
        f"static const bool compile_graph = {str(graph or case.is_compiled_as_graph).lower()};",
        f"static const DML_EXECUTION_FLAGS execution_flags = "
        f"(DML_EXECUTION_FLAGS)({' | '.join(flags) or '0'});",
        f"static const int runs = {1 if case.in_place else runs};",
        "",
        *_buffers(compiled, inputs),
        "",
        *_expected_elements(compiled, expected),
    ]
    text = _TEMPLATE.read_text(encoding="utf-8")
    return text.replace("@TITLE@", " ".join(title.split())).replace("@CASE@", "\n".join(lines))


def _edges(plan: Plan) -> Iterator[str]:
    for kind, edges in (
        ("INPUT", plan.input_edges),
        ("INTERMEDIATE", plan.intermediate_edges),
        ("OUTPUT", plan.output_edges),
    ):
        rows = [f"{{{', '.join(map(str, edge))}, nullptr}}" for edge in edges]
        yield from _vector(f"DML_{kind}_GRAPH_EDGE_DESC", f"{kind.lower()}_edges", rows)


def _nodes(nodes: Sequence[GraphNode]) -> Iterator[str]:
    rows = []
    for number, node in enumerate(nodes):
        name = f"node_{number}"
        if isinstance(node, Constant):
            content = buffer_bytes(node.tensor, node.data)[: node.tensor.TotalTensorSizeInBytes]
            yield from _bytes(name, content)
            rows.append(f"{{{_text(node.name)}, nullptr, {name}, {len(content)}}}")
            continue
        yield from _Desc(node.operator, node.desc, name).lines()
        desc = f"{{DML_OPERATOR_{node.operator_name}, &{name}}}"
        yield f"static const DML_OPERATOR_DESC {name}_operator = {desc};"
        rows.append(f"{{{_text(node.name or node.operator_name)}, &{name}_operator, nullptr, 0}}")
    if any(isinstance(node, Constant) for node in nodes):
        yield "#define HAS_CONSTANTS"
    yield from _vector("Node", "nodes", rows)


def _text(name: str) -> str:
    return json.dumps(name)


class _Desc:
    def __init__(self, operator: Operator, desc: Desc, name: str) -> None:
        self._operator, self._desc, self._name = operator, desc, name
        self._parts: list[str] = []

    def lines(self) -> list[str]:
        members = [self._member(field) for field in self._operator.fields]
        body = [f"    {text},  // {field.name}" for field, text in members]
        struct = self._operator.struct
        return [*self._parts, f"static const {struct} {self._name} = {{", *body, "};"]

    def _member(self, field: Field) -> tuple[Field, str]:
        value, name = self._desc.get(field.name), f"{self._name}_{field.name}"
        if value is None:
            return field, "nullptr"
        if field.is_tensor and field.is_array:
            for index, tensor in enumerate(value):
                self._parts += _tensor(f"{name}_{index}", tensor)
            items = ", ".join(_tensor_desc(f"{name}_{index}") for index in range(len(value)))
            return field, self._array("DML_TENSOR_DESC", name, items, len(value))
        if field.is_tensor:
            self._parts += _tensor(name, value)
            self._parts.append(f"static const DML_TENSOR_DESC {name} = {_tensor_desc(name)};")
            return field, f"&{name}"
        return field, self._attribute(field, value, name)

    def _attribute(self, field: Field, value: Any, name: str) -> str:
        kind = field.attribute_kind
        if kind is AttributeKind.OPERATOR:
            return self._nested(field, value, name)
        if field.is_array:
            items = ", ".join(self._scalar(field, item) for item in value)
            base = {"float": "FLOAT"}.get(field.base_type, field.base_type)
            return self._array(base, name, items, len(value))
        text = self._scalar(field, value)
        if field.c_type.endswith("*"):
            self._parts.append(f"static const {field.base_type} {name} = {text};")
            return f"&{name}"
        return text

    def _array(self, kind: str, name: str, items: str, count: int) -> str:
        if not count:
            return "nullptr"
        self._parts.append(f"static const {kind} {name}[] = {{{items}}};")
        return name

    def _nested(self, field: Field, value: Any, name: str) -> str:
        several = value if field.is_array else (value,)
        items = []
        for index, item in enumerate(several):
            operator = catalogue.operator(item["operator"])
            own = f"{name}_{index}"
            self._parts += _Desc(operator, item, own).lines()
            items.append(f"{{DML_OPERATOR_{operator.name}, &{own}}}")
        array = self._array("DML_OPERATOR_DESC", name, ", ".join(items), len(items))
        return array if field.is_array else f"&{name}[0]"

    def _scalar(self, field: Field, value: Any) -> str:
        kind = field.attribute_kind
        if kind is AttributeKind.SCALAR_UNION:
            content = scalar_bytes(value, self._desc[field.type_field or ""])
            return "{{" + ", ".join(map(str, content)) + "}}"
        if kind is AttributeKind.SIZE_2D:
            return f"{{{value['Width']}, {value['Height']}}}"
        if kind is AttributeKind.SCALE_BIAS:
            return f"{{{_float(value['Scale'])}, {_float(value['Bias'])}}}"
        if kind is AttributeKind.ENUM:
            constants = catalogue.enumeration(field.base_type)
            known = isinstance(value, str) and value in constants.values
            return f"{constants.prefix}{value}" if known else f"({field.base_type}){value}"
        if kind is AttributeKind.BOOL:
            return "TRUE" if value else "FALSE"
        if kind is AttributeKind.FLOAT:
            return _float(value)
        return f"{value}u" if kind is AttributeKind.UINT else str(value)


def _float(value: float) -> str:
    if math.isnan(value):
        return "(float)NAN"
    if math.isinf(value):
        return "-INFINITY" if value < 0 else "INFINITY"
    text = f"{value:.9g}"
    return f"{text}f" if "." in text or "e" in text else f"{text}.0f"


def _tensor(name: str, tensor: TensorDesc) -> Iterator[str]:
    sizes = ", ".join(map(str, tensor.Sizes))
    yield f"static const UINT {name}_sizes[] = {{{sizes}}};"
    strides = "nullptr"
    if tensor.Strides is not None:
        items = ", ".join(map(str, tensor.Strides))
        yield f"static const UINT {name}_strides[] = {{{items}}};"
        strides = f"{name}_strides"
    flags = " | ".join(f"DML_TENSOR_FLAG_{flag}" for flag in tensor.Flags)
    yield (
        f"static const DML_BUFFER_TENSOR_DESC {name}_buffer = {{"
        f"DML_TENSOR_DATA_TYPE_{tensor.DataType}, (DML_TENSOR_FLAGS)({flags or '0'}), "
        f"{tensor.DimensionCount}, {name}_sizes, {strides}, {tensor.TotalTensorSizeInBytes}, "
        f"{tensor.GuaranteedBaseOffsetAlignment}}};"
    )


def _tensor_desc(name: str) -> str:
    return f"{{DML_TENSOR_TYPE_BUFFER, &{name}_buffer}}"


def _buffers(plan: Plan, inputs: Mapping[str, Array]) -> Iterator[str]:
    names = [slot and slot.name for slot in plan.inputs]
    rows = []
    for number, slot in enumerate(plan.inputs):
        if slot is None:
            rows.append(_NO_BUFFER)
            continue
        data = "nullptr"
        if slot.name in inputs:
            data = f"data_{number}"
            yield from _bytes(data, buffer_bytes(slot.desc, inputs[slot.name]))
        owned = str(slot.desc.Owned).lower()
        rows.append(f"{{{_text(slot.name)}, {_size(slot.desc)}, {data}, {owned}, -1}}")
    yield from _vector("Buffer", "inputs", rows)
    rows = []
    for slot in plan.outputs:
        row = _NO_BUFFER
        if slot is not None:
            alias = names.index(plan.in_place[slot.name]) if slot.name in plan.in_place else -1
            row = f"{{{_text(slot.name)}, {_size(slot.desc)}, nullptr, false, {alias}}}"
        rows.append(row)
    yield from _vector("Buffer", "outputs", rows)


def _size(tensor: TensorDesc) -> int:
    return -(-tensor.TotalTensorSizeInBytes // 4) * 4


def _bytes(name: str, content: bytes) -> Iterator[str]:
    yield f"static const unsigned char {name}[] = {{"
    for start in range(0, len(content), _PER_LINE):
        row = content[start : start + _PER_LINE]
        yield "    " + ", ".join(f"0x{byte:02x}" for byte in row) + ","
    yield "};"


def _vector(kind: str, name: str, rows: Sequence[str]) -> Iterator[str]:
    yield f"static const std::vector<{kind}> {name} = {{"
    yield from (f"    {row}," for row in rows)
    yield "};"


def _expected_elements(plan: Plan, expected: Mapping[str, Expected]) -> Iterator[str]:
    rows = []
    for number, slot in enumerate(plan.outputs):
        if slot is None or slot.name not in expected:
            rows.append("{DML_TENSOR_DATA_TYPE_UNKNOWN, nullptr, 0, nullptr, 0, false, false}")
            continue
        right, is_float = expected[slot.name], slot.desc.DataType.is_float
        values = zip(offsets_of(slot.desc), right.values.ravel().tolist(), strict=True)
        elements = [_element(offset, value, is_float=is_float) for offset, value in values]
        yield f"static const Element expected_{number}[] = {{"
        yield from (f"    {element}," for element in elements)
        yield "};"
        ends = [end.ravel().tolist() for interval in right.permitted for end in interval]
        yield f"static const double permitted_{number}[] = {{"
        for element in zip(*ends, strict=True):
            yield f"    {', '.join(_double(float(end)) for end in element)},"
        yield "};"
        data_type = f"DML_TENSOR_DATA_TYPE_{slot.desc.DataType}"
        rows.append(
            f"{{{data_type}, expected_{number}, {len(elements)}, "
            f"permitted_{number}, {len(right.permitted)}, {str(right.signed_zeros).lower()}, "
            f"{str(slot.desc.DataType.is_signed).lower()}}}"
        )
    yield from _vector("Output", "expected", rows)


def _element(offset: int, value: Any, *, is_float: bool) -> str:
    integer = "0" if is_float else _integer(int(value))
    return f"{{{offset}, {_double(float(value))}, {integer}}}"


def _integer(value: int) -> str:
    return f"(long long){value}ull" if value >= 0 else f"-{-value - 1}ll - 1"


def _double(value: float) -> str:
    if math.isnan(value):
        return "nan_value"
    if math.isinf(value):
        return "-infinity" if value < 0 else "infinity"
    text = f"{value:.17g}"
    return text if "." in text or "e" in text else f"{text}.0"
