"""Cases of one operator are built from an entry of a case file.

The tested code is in `operator_build.py`, `tensor_entry.py`, `attributes.py` and `values.py` in
`dmlconf/cases/building/`, in `dmlconf/cases/model.py` and in `dmlconf/tensors/fills.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.model import ExpectedOutputs, ExpectedRejection, Fill, Provenance
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.fills import FILLS
from dmlconf.tensors.layout import LAYOUTS
from tests.cases.suites import ARGMIN, JOIN, JOIN_MATRIX, TILE, built, replace_once


def test_a_case_is_built_with_its_desc_data_and_expectation(tmp_path: Path) -> None:
    case = built(tmp_path, TILE)
    assert case.desc == {
        "InputTensor": TensorDesc(DataType.FLOAT32, (2,)),
        "OutputTensor": TensorDesc(DataType.FLOAT32, (4,)),
        "RepeatsCount": 1,
        "Repeats": (2,),
    }
    assert list(case.desc) == [field.name for field in case.entry.fields]
    assert case.inputs()["InputTensor"].tolist() == [1, 2]
    assert list(case.outputs()) == ["OutputTensor"]
    assert isinstance(case.expectation, ExpectedOutputs)
    assert case.expectation.provenance is Provenance.DOCUMENTED
    assert case.expectation.outputs["OutputTensor"].tolist() == [1, 2, 1, 2]
    assert case.required_level == FeatureLevel(3, 1)
    assert case.data_types == {DataType.FLOAT32}


def test_a_case_without_expect_has_no_expectation(tmp_path: Path) -> None:
    text = replace_once(TILE, "    expect: {OutputTensor: [1, 2, 1, 2]}\n", "")
    assert built(tmp_path, text).expectation is None


def test_case_that_expects_rejection_gets_zeros_without_data(tmp_path: Path) -> None:
    text = replace_once(TILE, ", values: [1, 2]", "")
    expect = "{rejected: E_INVALIDARG, constraint: output-sizes}"
    case = built(tmp_path, replace_once(text, "{OutputTensor: [1, 2, 1, 2]}", expect))
    assert case.expectation == ExpectedRejection(
        "E_INVALIDARG", "output-sizes", Provenance.DOCUMENTED
    )
    assert case.inputs()["InputTensor"].tolist() == [0, 0]


def test_a_rejection_with_recorded_is_a_recorded_rejection(tmp_path: Path) -> None:
    text = replace_once(TILE, "{OutputTensor: [1, 2, 1, 2]}", "{rejected: E_OUTOFMEMORY}")
    case = built(
        tmp_path, replace_once(text, "  - name: a", "  - recorded: DirectML 1\n    name: a")
    )
    assert case.expectation == ExpectedRejection("E_OUTOFMEMORY", None, Provenance.RECORDED)


def test_data_of_array_tensors_is_named_by_field_and_index(tmp_path: Path) -> None:
    case = built(tmp_path, JOIN)
    assert case.desc["InputCount"] == 2
    assert {name: values.tolist() for name, values in case.inputs().items()} == {
        "InputTensors[0]": [1],
        "InputTensors[1]": [0, 1],
    }


def test_repeat_in_an_array_of_tensors_gives_many_tensors(tmp_path: Path) -> None:
    case = built(tmp_path, JOIN_MATRIX)
    assert [tensor.Sizes for tensor in case.desc["InputTensors"]] == [(1,), (2,), (3,)]
    assert [values.tolist() for values in case.inputs().values()] == [[0], [1, 1], [2, 2, 2]]


def test_absent_fields_are_none_and_their_count_is_0(tmp_path: Path) -> None:
    for absent in ("", "      Repeats: ~\n"):
        case = built(tmp_path, replace_once(TILE, "      Repeats: [2]\n", absent))
        assert case.desc["Repeats"] is None
        assert case.desc["RepeatsCount"] == 0


def test_right_count_of_an_array_may_be_given(tmp_path: Path) -> None:
    text = replace_once(TILE, "Repeats: [2]", "RepeatsCount: 1\n      Repeats: [2]")
    assert built(tmp_path, text).desc["RepeatsCount"] == 1


@pytest.mark.parametrize("written", ["DECREASING", "DML_AXIS_DIRECTION_DECREASING", "1"])
def test_enum_is_given_by_number_name_or_prefixed_name(tmp_path: Path, written: str) -> None:
    case = built(tmp_path, replace_once(ARGMIN, "INCREASING", written))
    assert case.desc["AxisDirection"] == "DECREASING"


def test_an_enum_number_that_the_header_lacks_is_kept(tmp_path: Path) -> None:
    assert built(tmp_path, replace_once(ARGMIN, "INCREASING", "7")).desc["AxisDirection"] == 7


@pytest.mark.parametrize("written", ["FLOAT32", "DML_TENSOR_DATA_TYPE_FLOAT32"])
def test_data_type_may_have_its_prefix(tmp_path: Path, written: str) -> None:
    text = replace_once(TILE, "[2], DataType: FLOAT32", f"[2], DataType: {written}")
    assert built(tmp_path, text).desc["InputTensor"].DataType is DataType.FLOAT32


@pytest.mark.parametrize(
    ("written", "flags"),
    [
        ("[OWNED_BY_DML]", ("OWNED_BY_DML",)),
        ("OWNED_BY_DML", ("OWNED_BY_DML",)),
        ("[DML_TENSOR_FLAG_OWNED_BY_DML]", ("OWNED_BY_DML",)),
        ("NONE", ()),
        ("[]", ()),
    ],
)
def test_flags_may_have_a_prefix_and_form_a_list(
    tmp_path: Path, written: str, flags: tuple[str, ...]
) -> None:
    text = replace_once(TILE, "values: [1, 2]", f"values: [1, 2], Flags: {written}")
    assert built(tmp_path, text).desc["InputTensor"].Flags == flags


@pytest.mark.parametrize("values", ["[[1, 2, 3], [4, 5, 6]]", "[1, 2, 3, 4, 5, 6]"])
def test_values_of_a_tensor_may_be_nested_or_flat(tmp_path: Path, values: str) -> None:
    text = replace_once(
        TILE, "[2], DataType: FLOAT32, values: [1, 2]", f"[2, 3], DataType: INT8, values: {values}"
    )
    case = built(tmp_path, text.replace("    expect: {OutputTensor: [1, 2, 1, 2]}\n", ""))
    assert case.inputs()["InputTensor"].tolist() == [[1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_each_layout_gives_its_strides(tmp_path: Path, layout: str) -> None:
    strides = {
        "implicit": None,
        "packed": (12, 4, 1),
        "padded": (28, 7, 1),
        "transposed": (1, 2, 6),
        "channels-last": (12, 1, 3),
        "broadcast": (0, 4, 1),
    }
    text = replace_once(
        TILE,
        "[2], DataType: FLOAT32, values: [1, 2]",
        f"[2, 3, 4], DataType: FLOAT32, fill: sequence, layout: {layout}",
    )
    tensor = built(tmp_path, text).desc["InputTensor"]
    assert tensor.Strides == strides[layout]


def test_strides_size_and_alignment_of_a_tensor_are_kept(tmp_path: Path) -> None:
    more = "Strides: [3], TotalTensorSizeInBytes: 40, GuaranteedBaseOffsetAlignment: 256"
    case = built(tmp_path, replace_once(TILE, "values: [1, 2]", f"values: [1, 2], {more}"))
    tensor = case.desc["InputTensor"]
    assert (tensor.Strides, tensor.TotalTensorSizeInBytes) == ((3,), 40)
    assert tensor.GuaranteedBaseOffsetAlignment == 256
    assert tensor.MinimumTensorSizeInBytes == 4 * (3 + 1)  # The last element has the offset 3.


def test_elements_that_share_memory_get_equal_values(tmp_path: Path) -> None:
    text = replace_once(
        TILE,
        "[2], DataType: FLOAT32, values: [1, 2]",
        "[2, 2], DataType: FLOAT32, fill: sequence, layout: broadcast",
    )
    assert built(tmp_path, text).inputs()["InputTensor"].tolist() == [[2, 3], [2, 3]]


@pytest.mark.parametrize(
    ("written", "fill"),
    [
        ("sequence", Fill("sequence", {})),
        ("{sequence: }", Fill("sequence", {})),
        ("{integers: {low: -1, high: 2}}", Fill("integers", {"low": -1, "high": 2})),
        ("{uniform: {low: -0.5, high: 2.5}}", Fill("uniform", {"low": -0.5, "high": 2.5})),
        ("{constant: {value: .inf}}", Fill("constant", {"value": float("inf")})),
    ],
)
def test_fill_is_kept_and_gives_the_data(tmp_path: Path, written: str, fill: Fill) -> None:
    case = built(tmp_path, replace_once(TILE, "values: [1, 2]", f"fill: {written}"))
    assert case.data == {"InputTensor": fill}
    numbers = FILLS[fill.name](0, 2, DataType.FLOAT32, **fill.arguments)
    assert np.array_equal(case.inputs()["InputTensor"], numbers)


def test_an_expected_output_may_be_a_fill(tmp_path: Path) -> None:
    text = replace_once(TILE, "[1, 2, 1, 2]", "{fill: {constant: {value: 3}}}")
    expectation = built(tmp_path, text).expectation
    assert isinstance(expectation, ExpectedOutputs)
    assert expectation.outputs["OutputTensor"].tolist() == [3] * 4


def test_more_strides_than_sizes_violate_a_constraint(
    tmp_path: Path,
) -> None:
    text = replace_once(TILE, "Sizes: [2],", "Sizes: [2], Strides: [1, 1],")
    expect = "expect: {rejected: E_INVALIDARG, constraint: strides-per-dimension}"
    case = built(tmp_path, replace_once(text, "expect: {OutputTensor: [1, 2, 1, 2]}", expect))
    assert case.inputs()["InputTensor"].tolist() == [1, 2]
    assert case.desc["InputTensor"].TotalTensorSizeInBytes == 8
    assert case.violations() == ("strides-per-dimension",)
