"""Entries of the catalogue are consistent; so are its feature levels, fields, enums and tensors.

The tested code is in `dmlconf/catalogue/model.py`, `dmlconf/catalogue/desc.py`,
`dmlconf/catalogue/loader.py`, `schemas/operators/` and `schemas/common.yaml`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.loader import (
    enumeration,
    operator,
    operator_files,
    operator_names,
    tensor_constraints,
)
from dmlconf.catalogue.model import AttributeKind, FeatureLevel, Field, FieldKind, Operator
from dmlconf.catalogue.precision import RuleKind
from dmlconf.resources import schemas_directory
from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.layout import LAYOUTS
from tests.cli.process import printed_by
from tests.each import for_each

OPERATORS = [operator(name) for name in operator_names()]


@pytest.mark.parametrize("text", ["4_1", "DML_FEATURE_LEVEL_4_1"])
def test_a_feature_level_may_have_a_prefix(text: str) -> None:
    assert FeatureLevel.parse(text) == (4, 1)
    assert str(FeatureLevel.parse(text)) == "4_1"


def test_feature_levels_are_ordered_by_their_numbers() -> None:
    texts = ["1_0", "2_0", "2_1", "3_1", "4_0", "6_4", "10_0"]
    assert sorted(map(FeatureLevel.parse, reversed(texts))) == [*map(FeatureLevel.parse, texts)]


@pytest.mark.parametrize("text", ["", "4", "4.1", "4_1_0", "x4_1", "4_1 ", "4_1\n", "-4_1"])
def test_parsing_a_feature_level_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="is not a feature level such as 4_1"):
        FeatureLevel.parse(text)


@pytest.mark.parametrize(
    ("c_type", "base", "kind"),
    [
        ("UINT", "UINT", AttributeKind.UINT),
        ("const UINT*", "UINT", AttributeKind.UINT),
        ("INT", "INT", AttributeKind.INT),
        ("FLOAT", "FLOAT", AttributeKind.FLOAT),
        ("float", "float", AttributeKind.FLOAT),
        ("const float*", "float", AttributeKind.FLOAT),
        ("BOOL", "BOOL", AttributeKind.BOOL),
        ("DML_SCALAR_UNION", "DML_SCALAR_UNION", AttributeKind.SCALAR_UNION),
        ("DML_SIZE_2D", "DML_SIZE_2D", AttributeKind.SIZE_2D),
        ("const DML_SCALE_BIAS*", "DML_SCALE_BIAS", AttributeKind.SCALE_BIAS),
        ("const DML_OPERATOR_DESC*", "DML_OPERATOR_DESC", AttributeKind.OPERATOR),
        ("DML_AXIS_DIRECTION", "DML_AXIS_DIRECTION", AttributeKind.ENUM),
    ],
)
def test_the_c_type_gives_an_attributes_kind(c_type: str, base: str, kind: AttributeKind) -> None:
    field = Field("A", FieldKind.ATTRIBUTE, c_type)
    assert (field.base_type, field.attribute_kind) == (base, kind)
    assert not field.is_tensor


@for_each(OPERATORS, name=lambda o: o.name)
def test_name_struct_and_page_of_an_operator_agree(entry: Operator) -> None:
    assert entry.name == entry.name.upper()
    short = {entry.name, *entry.aliases}
    assert entry.struct in {f"DML_{name}_OPERATOR_DESC" for name in short}
    named = entry.struct.lower()
    assert entry.page in {f"ns-directml-{named}", f"ns-directml-{named.replace('_operator', '')}"}


@for_each(OPERATORS, name=lambda o: o.name)
def test_tensors_are_pointers_and_counts_precede_arrays(entry: Operator) -> None:
    for field in entry.fields:
        assert field.is_tensor == (field.base_type == "DML_TENSOR_DESC")
        assert field.is_tensor <= field.c_type.endswith("*")
        assert entry.field(field.name) is field
    for count, arrays in entry.count_fields.items():
        assert entry.field(count).c_type == "UINT"
        assert all(entry.field(name).count == count for name in arrays)
        names = [field.name for field in entry.fields]
        assert names.index(count) < min(map(names.index, arrays))


@for_each(OPERATORS, name=lambda o: o.name)
def test_support_tables_are_complete_and_newest_first(
    entry: Operator,
) -> None:
    tensors = {field.name for field in entry.fields if field.is_tensor}
    optional = {field.name for field in entry.fields if field.is_tensor and field.optional}
    for when in {table.when for table in entry.support}:
        levels = [table.since for table in entry.support if table.when == when]
        assert levels == sorted(levels, reverse=True)
    for table in entry.support:
        assert tensors - optional <= table.tensors.keys() <= tensors
        for support in table.tensors.values():
            assert 1 <= support.ranks[0] <= support.ranks[1] <= 8
            assert support.data_types


@for_each(OPERATORS, name=lambda o: o.name)
def test_a_newer_table_keeps_data_types_and_ranks(
    entry: Operator,
) -> None:
    for newer, older in zip(entry.support, entry.support[1:], strict=False):
        if newer.when or older.when:
            continue
        for name, support in older.tensors.items():
            assert set(support.data_types) <= set(newer.tensors[name].data_types)
            assert newer.tensors[name].ranks[0] <= support.ranks[0]
            assert newer.tensors[name].ranks[1] >= support.ranks[1]


@for_each(OPERATORS, name=lambda o: o.name)
def test_every_output_has_a_precision_rule_with_its_source(entry: Operator) -> None:
    outputs = {field.name for field in entry.of_kind(FieldKind.OUTPUT)}
    assert entry.precision.keys() == outputs
    for rules in entry.precision.values():
        for rule in rules:
            assert rule.source
            limited = rule.kind not in (RuleKind.EXACT, RuleKind.INTERVAL, RuleKind.ONE_OF)
            assert limited == bool(rule.limit or rule.limits)


def test_numbers_of_operator_types_are_unique() -> None:
    numbers = [entry.type_value for entry in OPERATORS]
    assert len(set(numbers)) == len(numbers)


def test_an_unknown_field_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="Nope"):
        operator("TILE").field("Nope")


def test_the_enum_of_data_types_has_every_data_type() -> None:
    values = enumeration("DML_TENSOR_DATA_TYPE").values
    assert set(values) == {"UNKNOWN", *DataType}
    assert sorted(values.values()) == list(range(len(values)))


def test_an_enum_has_the_headers_prefix() -> None:
    assert enumeration("DML_AXIS_DIRECTION").prefix == "DML_AXIS_DIRECTION_"
    assert enumeration("DML_TENSOR_FLAGS").prefix == "DML_TENSOR_FLAG_"


def test_an_unknown_enum_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        enumeration("DML_NOPE")


def test_tensor_constraints_name_only_tensor_and_have_sources() -> None:
    assert tensor_constraints()
    for constraint in tensor_constraints():
        assert constraint.require.names == {"Tensor"}
        assert constraint.source in ("page", "header", "measured")


def test_bytes_of_a_tensor_are_computed_or_declared() -> None:
    tensor = TensorDesc(DataType.FLOAT16, (2, 3), Strides=(4, 1))
    assert tensor.DimensionCount == 2
    assert tensor.MinimumTensorSizeInBytes == tensor.TotalTensorSizeInBytes == 16
    declared = TensorDesc(DataType.FLOAT16, (2, 3), DeclaredTensorSizeInBytes=99)
    assert (declared.MinimumTensorSizeInBytes, declared.TotalTensorSizeInBytes) == (12, 99)


def test_a_tensor_without_elements_needs_no_bytes() -> None:
    assert TensorDesc(DataType.FLOAT32, (2, 0), Strides=(5, 1)).MinimumTensorSizeInBytes == 0


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_tensor_tells_whether_its_elements_share_offsets(layout: str) -> None:
    tensor = TensorDesc(DataType.INT8, (2, 3), LAYOUTS[layout]((2, 3)))
    assert tensor.OverlappingStrides == (layout == "broadcast")


def test_tensors_come_in_struct_order_and_arrays_are_numbered() -> None:
    first, second = (TensorDesc(DataType.INT8, (size,)) for size in (1, 2))
    desc = {"OutputTensor": second, "InputTensors": (first, second), "Axis": 0, "InputCount": 2}
    join = operator("JOIN")
    kinds = FieldKind.INPUT, FieldKind.OUTPUT
    actual = [(name, tensor) for name, _, tensor in tensors_of(join, desc, *kinds)]
    assert actual == [
        ("InputTensors[0]", first),
        ("InputTensors[1]", second),
        ("OutputTensor", second),
    ]
    assert [name for name, _, _ in tensors_of(join, desc, FieldKind.OUTPUT)] == ["OutputTensor"]
    assert not list(tensors_of(join, {"InputTensors": None}, FieldKind.INPUT))


PRINT_OPENED_FILES: Final = """
import sys
from dmlconf.catalogue import loader

opened = []
sys.addaudithook(lambda event, values: opened.append(values[0]) if event == "open" else None)
for name in loader.operator_names():
    loader.operator(name)
loader.tensor_constraints()
loader.catalogue_digest()
print(*opened, sep="\\n")
"""


@pytest.mark.slow
def test_the_catalogue_reads_only_its_own_schema_files() -> None:
    checkout = Path(__file__).parents[2]
    read = {Path(line) for line in printed_by(PRINT_OPENED_FILES, checkout).splitlines()}
    data = {path for path in read if path.suffix not in (".py", ".pyc")}
    assert data == {schemas_directory() / "common.yaml", *operator_files()}
