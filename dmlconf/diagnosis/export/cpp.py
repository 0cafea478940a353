"""Write a case as a C++ program against DirectML.h that prints the elements that are wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import AttributeKind, Field, FieldKind, Operator
from dmlconf.diagnosis.export.buffers import Expected, buffer_bytes, expected_of, offsets_of
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.scalar import scalar_bytes

__all__ = ["MOST_BYTES", "cpp_program"]

MOST_BYTES: Final = 1 << 18
"""Bytes of the buffers of a case that a program holds; of more it would be hard to compile."""

_TEMPLATE: Final = Path(__file__).parent / "templates" / "case.cpp"
_PER_LINE: Final = 16


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
        case: the case, of one operator; its data are arrays.
        title: what the program shows, in one line.
        metacommands: whether the driver's own implementations of operators may be used.
        half: whether intermediate results may be FLOAT16.
        graph: whether the operator is compiled as a graph of one node.
        runs: how often it runs.
    """
    flags = [
        *([] if metacommands else ["DML_EXECUTION_FLAG_DISABLE_META_COMMANDS"]),
        *(["DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION"] if half else []),
    ]
    rejected = isinstance(case.expectation, ExpectedRejection)
    expected = {} if rejected else expected_of(case, half=half)
    inputs = {} if rejected else case.inputs()
    lines = [
        *_Desc(case.operator, case.desc, "desc").lines(),
        f"static const DML_OPERATOR_DESC operator_desc = "
        f"{{DML_OPERATOR_{case.operator_name}, &desc}};",
        f"static const DML_EXECUTION_FLAGS execution_flags = "
        f"(DML_EXECUTION_FLAGS)({' | '.join(flags) or '0'});",
        f"static const bool compile_graph = {str(graph).lower()};",
        f"static const int runs = {1 if case.in_place else runs};",
        "",
        *_buffers(case, inputs),
        "",
        *_expected_elements(case, expected),
    ]
    text = _TEMPLATE.read_text(encoding="utf-8")
    return text.replace("@TITLE@", " ".join(title.split())).replace("@CASE@", "\n".join(lines))


class _Desc:
    """The lines that define an operator's desc."""

    def __init__(self, operator: Operator, desc: Desc, name: str) -> None:
        self._operator, self._desc, self._name = operator, desc, name
        self._parts: list[str] = []

    def lines(self) -> list[str]:
        """Return the definitions of all parts, then that of the desc itself."""
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


def _slots(case: Case, kind: FieldKind) -> Iterator[tuple[str, TensorDesc | None]]:
    """Yield the tensors in the order of bindings; an absent one has a slot as well."""
    for field in case.operator.of_kind(kind):
        value = case.desc.get(field.name)
        if isinstance(value, tuple):
            yield from ((f"{field.name}[{index}]", each) for index, each in enumerate(value))
        else:
            yield field.name, value


def _buffers(case: Case, inputs: Mapping[str, Array]) -> Iterator[str]:
    names = [name for name, _ in _slots(case, FieldKind.INPUT)]
    rows = []
    for number, (name, tensor) in enumerate(_slots(case, FieldKind.INPUT)):
        if tensor is None:
            rows.append("{nullptr, 0, nullptr, false, -1}")
            continue
        data = "nullptr"
        if name in inputs:
            data = f"data_{number}"
            yield from _bytes(data, buffer_bytes(tensor, inputs[name]))
        owned = str("OWNED_BY_DML" in tensor.Flags).lower()
        rows.append(f'{{"{name}", {_size(tensor)}, {data}, {owned}, -1}}')
    yield from _vector("Buffer", "inputs", rows)
    rows = []
    for name, tensor in _slots(case, FieldKind.OUTPUT):
        alias = names.index(case.in_place[name]) if name in case.in_place else -1
        row = "{nullptr, 0, nullptr, false, -1}"
        if tensor is not None:
            row = f'{{"{name}", {_size(tensor)}, nullptr, false, {alias}}}'
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


def _expected_elements(case: Case, expected: Mapping[str, Expected]) -> Iterator[str]:
    rows = []
    for number, (name, tensor) in enumerate(_slots(case, FieldKind.OUTPUT)):
        if tensor is None or name not in expected:
            rows.append("{DML_TENSOR_DATA_TYPE_UNKNOWN, nullptr, 0}")
            continue
        right = expected[name]
        numbers = zip(
            offsets_of(tensor),
            right.values.ravel().tolist(),
            right.lowest.ravel().tolist(),
            right.highest.ravel().tolist(),
            strict=True,
        )
        elements = [_element(*row, is_float=tensor.DataType.is_float) for row in numbers]
        yield f"static const Element expected_{number}[] = {{"
        yield from (f"    {element}," for element in elements)
        yield "};"
        data_type = f"DML_TENSOR_DATA_TYPE_{tensor.DataType}"
        rows.append(f"{{{data_type}, expected_{number}, {len(elements)}}}")
    yield from _vector("Output", "expected", rows)


def _element(offset: int, value: Any, low: Any, high: Any, *, is_float: bool) -> str:
    integer = "0" if is_float else _integer(int(value))
    ends = ", ".join(_double(float(number)) for number in (value, low, high))
    return f"{{{offset}, {ends}, {integer}}}"


def _integer(value: int) -> str:
    return f"(long long){value}ull" if value >= 0 else f"-{-value - 1}ll - 1"


def _double(value: float) -> str:
    if math.isnan(value):
        return "nan_value"
    if math.isinf(value):
        return "-infinity" if value < 0 else "infinity"
    text = f"{value:.17g}"
    return text if "." in text or "e" in text else f"{text}.0"
