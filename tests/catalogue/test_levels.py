"""The feature level that a desc needs is found, and the part of the desc that needs it.

The tested code is in `dmlconf/catalogue/levels.py`, `schemas/operators/` and `schemas/common.yaml`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.levels import (
    LevelNeed,
    highest_level,
    level_needs,
    required_level,
    spoken_level,
    tables_in_effect,
)
from dmlconf.catalogue.loader import enumeration, operator, operator_names
from dmlconf.catalogue.model import AttributeKind, FeatureLevel, FieldKind, Operator
from dmlconf.tensors.datatypes import DataType


def tensor(data_type: str, *sizes: int) -> TensorDesc:
    return TensorDesc(DataType(data_type), sizes)


FLOATS = tensor("FLOAT32", 1, 2, 3, 4)
INTEGERS = tensor("INT32", 1, 2, 3, 4)
ONE = tensor("FLOAT32", 1, 1, 1, 1)

# Descs with only the fields on which a feature level depends.
ACTIVATION = {"InputTensor": FLOATS, "OutputTensor": FLOATS}
NORMALIZATION = {**ACTIVATION, "ScaleTensor": FLOATS, "BiasTensor": FLOATS}
PADDING = {**ACTIVATION, "PaddingMode": "EDGE"}
GEMM = {"ATensor": FLOATS, "BTensor": FLOATS, "OutputTensor": FLOATS}
CONVOLUTION = {**ACTIVATION, "FilterTensor": FLOATS, "DimensionCount": 2}
POOLING = {"InputTensor": FLOATS, "InputGradientTensor": FLOATS, "OutputGradientTensor": FLOATS}
CLIP1 = {**ACTIVATION, "MinMaxDataType": "FLOAT32"}
BATCH = {**NORMALIZATION, "MeanTensor": ONE, "VarianceTensor": ONE, "Spatial": True}
QUANTIZED = {
    "InputTensor": FLOATS,
    "ScaleTensor": FLOATS,
    "OutputTensor": tensor("UINT8", 1, 2, 3, 4),
}
QUANTIZED_WITH_ZERO_POINT = {**QUANTIZED, "ZeroPointTensor": tensor("UINT8", 1, 2, 3, 4)}


def fused(desc: Mapping[str, Any], name: str, **attributes: Any) -> dict[str, Any]:
    return {**desc, "FusedActivation": {"operator": name, **attributes}}


NEWER_PARTS: list[tuple[str, Mapping[str, Any], str, str]] = [
    ("ACTIVATION_SOFTPLUS", {**ACTIVATION, "Steepness": 0.5}, "6_4", "a Steepness below 1 or NaN"),
    (
        "ACTIVATION_SOFTPLUS",
        {**ACTIVATION, "Steepness": float("nan")},
        "6_4",
        "a Steepness below 1 or NaN",
    ),
    ("PADDING", {**PADDING, "PaddingMode": "SYMMETRIC"}, "3_0", "PaddingMode SYMMETRIC"),
    ("PADDING", {**PADDING, "PaddingMode": "WRAP"}, "6_4", "PaddingMode WRAP"),
    (
        "PADDING1",
        {**PADDING, "PaddingMode": "WRAP", "PaddingValueDataType": "FLOAT32"},
        "6_4",
        "PaddingMode WRAP",
    ),
    ("ELEMENT_WISE_CLIP1", {**CLIP1, "MinMaxDataType": "INT4"}, "6_3", "MinMaxDataType INT4"),
    ("ELEMENT_WISE_CLIP1", {**CLIP1, "MinMaxDataType": "UINT4"}, "6_3", "MinMaxDataType UINT4"),
    (
        "MEAN_VARIANCE_NORMALIZATION",
        {**NORMALIZATION, "BiasTensor": None},
        "5_2",
        "a ScaleTensor without a BiasTensor",
    ),
    (
        "MEAN_VARIANCE_NORMALIZATION",
        {**NORMALIZATION, "ScaleTensor": None},
        "5_2",
        "a BiasTensor without a ScaleTensor",
    ),
    (
        "MEAN_VARIANCE_NORMALIZATION1",
        {**NORMALIZATION, "BiasTensor": None},
        "5_2",
        "a ScaleTensor without a BiasTensor",
    ),
    (
        "MEAN_VARIANCE_NORMALIZATION1",
        {**NORMALIZATION, "ScaleTensor": None},
        "5_2",
        "a BiasTensor without a ScaleTensor",
    ),
    (
        "MEAN_VARIANCE_NORMALIZATION1",
        {**NORMALIZATION, "ScaleTensor": ONE},
        "4_0",
        "a ScaleTensor or BiasTensor that is broadcast along the channels",
    ),
    (
        "BATCH_NORMALIZATION",
        {**BATCH, "Spatial": False},
        "4_0",
        "Spatial FALSE with a MeanTensor or VarianceTensor that is broadcast along height or width",
    ),
    (
        "ELEMENT_WISE_POW",
        {**ACTIVATION, "ExponentTensor": tensor("FLOAT16", 1, 2, 3, 4)},
        "3_0",
        "an ExponentTensor of another data type than InputTensor",
    ),
    (
        "ELEMENT_WISE_QUANTIZE_LINEAR",
        QUANTIZED,
        "6_2",
        "an absent ZeroPointTensor",
    ),
    (
        "ELEMENT_WISE_DEQUANTIZE_LINEAR",
        {**QUANTIZED, "InputTensor": tensor("UINT8", 1, 2, 3, 4), "OutputTensor": FLOATS},
        "6_2",
        "an absent ZeroPointTensor",
    ),
    (
        "REDUCE",
        {"Function": "L1", "InputTensor": INTEGERS, "OutputTensor": INTEGERS},
        "5_0",
        "InputTensor and OutputTensor of INT32 with Function L1",
    ),
    (
        "REDUCE",
        {"Function": "SUM", "InputTensor": INTEGERS, "OutputTensor": INTEGERS},
        "2_1",
        "InputTensor and OutputTensor of INT32 with Function SUM",
    ),
    (
        "CONVOLUTION",
        {**CONVOLUTION, "DimensionCount": 1},
        "5_0",
        "a DimensionCount that is not the number of spatial dimensions",
    ),
    (
        "MAX_POOLING_GRAD",
        {**POOLING, "DimensionCount": 3},
        "5_0",
        "a DimensionCount that is not the number of spatial dimensions",
    ),
    (
        "GEMM",
        fused(GEMM, "ELEMENT_WISE_CLIP", Min=0, Max=1),
        "6_0",
        "FusedActivation ELEMENT_WISE_CLIP",
    ),
    (
        "CONVOLUTION",
        fused(CONVOLUTION, "ELEMENT_WISE_CLIP", Min=0, Max=1),
        "6_0",
        "FusedActivation ELEMENT_WISE_CLIP",
    ),
    ("GEMM", fused(GEMM, "ACTIVATION_SOFTMAX"), "6_1", "FusedActivation ACTIVATION_SOFTMAX"),
    ("GEMM", fused(GEMM, "ACTIVATION_SOFTMAX1"), "6_1", "FusedActivation ACTIVATION_SOFTMAX1"),
    ("GEMM", fused(GEMM, "ACTIVATION_SHRINK"), "2_0", "FusedActivation ACTIVATION_SHRINK"),
    ("GEMM", fused(GEMM, "ACTIVATION_CELU"), "3_0", "FusedActivation ACTIVATION_CELU"),
    ("GEMM", fused(GEMM, "ACTIVATION_GELU"), "5_1", "FusedActivation ACTIVATION_GELU"),
    (
        "CONVOLUTION",
        fused(CONVOLUTION, "ACTIVATION_SWISH"),
        "6_2",
        "FusedActivation ACTIVATION_SWISH",
    ),
    (
        "CONVOLUTION",
        fused(CONVOLUTION, "ACTIVATION_HARD_SWISH"),
        "6_2",
        "FusedActivation ACTIVATION_HARD_SWISH",
    ),
    (
        "GEMM",
        fused(GEMM, "ACTIVATION_SOFTPLUS", Steepness=0.5),
        "6_4",
        "a Steepness below 1 or NaN of FusedActivation ACTIVATION_SOFTPLUS",
    ),
    ("ACTIVATION_SWISH", ACTIVATION, "6_2", "DML_OPERATOR_ACTIVATION_SWISH"),
    (
        "ACTIVATION_RELU",
        {"InputTensor": tensor("FLOAT32", 2), "OutputTensor": tensor("FLOAT32", 2)},
        "3_0",
        "InputTensor and OutputTensor of 1 dimension",
    ),
]
"""Operator, desc, the feature level that it needs, and the part that needs this level."""


@pytest.mark.parametrize(("name", "desc", "level", "part"), NEWER_PARTS)
def test_a_desc_needs_the_level_of_its_newest_part(
    name: str, desc: Mapping[str, Any], level: str, part: str
) -> None:
    entry = operator(name)
    assert required_level(entry, desc) == FeatureLevel.parse(level)
    assert spoken_level(level_needs(entry, desc)) == f"feature level {level} for {part}"


@pytest.mark.parametrize(
    ("name", "desc", "level"),
    [
        ("ACTIVATION_SOFTPLUS", {**ACTIVATION, "Steepness": 1.0}, "1_0"),
        ("ACTIVATION_SOFTPLUS", {**ACTIVATION, "Steepness": float("inf")}, "1_0"),
        ("PADDING", PADDING, "1_0"),
        ("ELEMENT_WISE_CLIP1", CLIP1, "5_0"),
        ("MEAN_VARIANCE_NORMALIZATION", NORMALIZATION, "1_0"),
        ("MEAN_VARIANCE_NORMALIZATION", ACTIVATION, "1_0"),
        ("MEAN_VARIANCE_NORMALIZATION", {**NORMALIZATION, "ScaleTensor": ONE}, "1_0"),
        ("MEAN_VARIANCE_NORMALIZATION1", NORMALIZATION, "2_1"),
        ("BATCH_NORMALIZATION", BATCH, "1_0"),
        (
            "BATCH_NORMALIZATION",
            {**BATCH, "Spatial": False, "MeanTensor": FLOATS, "VarianceTensor": FLOATS},
            "1_0",
        ),
        ("ELEMENT_WISE_POW", {**ACTIVATION, "ExponentTensor": FLOATS}, "1_0"),
        ("ELEMENT_WISE_QUANTIZE_LINEAR", QUANTIZED_WITH_ZERO_POINT, "1_0"),
        ("CONVOLUTION", CONVOLUTION, "1_0"),
        ("GEMM", fused(GEMM, "ACTIVATION_RELU"), "1_0"),
    ],
)
def test_a_desc_without_newer_parts_needs_a_lower_level(
    name: str, desc: Mapping[str, Any], level: str
) -> None:
    assert required_level(operator(name), desc) == FeatureLevel.parse(level)


def requirements() -> Iterator[tuple[str, str]]:
    """Yield operator and text of each level that the catalogue demands outside support tables."""
    for entry in map(operator, operator_names()):
        for requirement in entry.level_requirements:
            yield entry.name, f"feature level {requirement.since} for {requirement.part}"
        for field in entry.of_kind(FieldKind.ATTRIBUTE):
            if field.attribute_kind is AttributeKind.ENUM and not is_type_of_a_tensor(
                entry, field.name
            ):
                for value, since in enumeration(field.base_type).since.items():
                    if since > entry.since:
                        yield entry.name, f"feature level {since} for {field.name} {value}"


def is_type_of_a_tensor(entry: Operator, attribute: str) -> bool:
    """Return whether an attribute must equal an output's data type."""
    return any(
        constraint.enforced and constraint.require.source.startswith(f"{attribute} == Output")
        for constraint in entry.constraints
    )


def test_newer_parts_has_every_level_requirement() -> None:
    stated = {
        (name, spoken_level([need]))
        for name, desc, _, _ in NEWER_PARTS
        for need in level_needs(operator(name), desc)
    }
    required = set(requirements())
    assert required
    assert required - stated == set()


def test_a_desc_needs_the_level_of_every_nested_operator() -> None:
    lstm = operator("LSTM")
    activations = ({"operator": "ACTIVATION_GELU"}, {"operator": "ACTIVATION_SWISH"})
    needs = level_needs(lstm, {"ActivationDescs": activations})
    assert LevelNeed(FeatureLevel(5, 1), "ActivationDescs ACTIVATION_GELU") in needs
    assert LevelNeed(FeatureLevel(6, 2), "ActivationDescs ACTIVATION_SWISH") in needs
    assert highest_level(needs) == (6, 2)


def test_an_unsupported_tensor_does_not_hide_other_levels() -> None:
    desc = {**PADDING, "InputTensor": tensor("INT4", 1), "PaddingMode": "WRAP"}
    assert required_level(operator("PADDING"), desc) is None
    assert spoken_level(level_needs(operator("PADDING"), desc)) == (
        "feature level 6_4 for PaddingMode WRAP"
    )


def test_a_condition_on_an_absent_tensor_demands_no_level() -> None:
    desc = {"InputTensor": FLOATS, "OutputTensor": FLOATS, "ExponentTensor": None}
    assert required_level(operator("ELEMENT_WISE_POW"), desc) == (1, 0)


@pytest.mark.parametrize(
    ("name", "desc", "part"),
    [
        ("GATHER", {"InputTensor": tensor("INT64", 1, 1, 1, 1)}, "InputTensor of INT64"),
        ("GATHER", {"InputTensor": tensor("INT64", 1)}, "InputTensor of INT64"),
        ("GATHER", {"InputTensor": tensor("FLOAT32", 1)}, "InputTensor of 1 dimension"),
        ("TOP_K", {"InputTensor": tensor("INT8", 2, 2)}, "InputTensor of 2 dimensions"),
        (
            "CAST",
            {
                "InputTensor": tensor("FLOAT32", 1, 1, 1, 1),
                "OutputTensor": tensor("INT64", 1, 1, 1, 1),
            },
            "OutputTensor of INT64",
        ),
    ],
)
def test_the_reason_names_the_data_type_or_rank(
    name: str, desc: Mapping[str, Any], part: str
) -> None:
    assert spoken_level(level_needs(operator(name), desc)).endswith(f" for {part}")


def test_tables_in_effect_begin_at_the_needed_level() -> None:
    padding = operator("PADDING")
    levels = [str(table.since) for table in tables_in_effect(padding, PADDING)]
    assert levels == ["5_0", "3_1", "2_1", "1_0"]
    wrap = {**PADDING, "PaddingMode": "WRAP"}
    assert [str(table.since) for table in tables_in_effect(padding, wrap)] == ["5_0"]
    symmetric = {**PADDING, "PaddingMode": "SYMMETRIC"}
    levels = [str(table.since) for table in tables_in_effect(padding, symmetric)]
    assert levels == ["5_0", "3_1", "2_1"]


def test_no_support_table_before_3_0_lists_signed_indices() -> None:
    """Pages permit negative indices from feature level 3_0 on."""
    signed = {DataType("INT32"), DataType("INT64"), DataType("INT16"), DataType("INT8")}
    early = [
        (name, table.tensors["IndicesTensor"].data_types)
        for name in operator_names()
        for table in operator(name).support
        if table.since < (3, 0) and "IndicesTensor" in table.tensors
    ]
    assert "GATHER" in dict(early)
    assert [name for name, data_types in early if not signed.isdisjoint(data_types)] == []
