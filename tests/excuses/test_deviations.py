"""Deviations of a target, such as ONNX, waive what its specification leaves open, and nothing else.

The tested code is in `deviations.py`, `deviating_elements.py` and `permitted_refusals.py` in
`dmlconf/excuses/`, and in `schemas/targets/`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Environment, Outcome, Outputs, Rejection
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import operator_names
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.documents.reader import read_document
from dmlconf.documents.schema import Checker, bundled_schema
from dmlconf.excuses.deviations import Deviations, deviations_of, read_deviations
from dmlconf.judging.conclusion import Conclusion
from dmlconf.resources import schemas_directory
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.bundled import bundled
from tests.excuses.test_formulas_as_written import described, tensor
from tests.permitted.graphs.accepted import graph, single

ONNX: Final = read_deviations("onnx")
FORWARD_GRU: Final = "DataType=FLOAT32,Direction=FORWARD,LinearBeforeReset=False"


def case(name: str) -> Case:
    """Return the bundled case with this identifier."""
    operator, rest = name.split("/", 1)
    file = rest.partition("[")[0].partition("/")[0]
    plan = bundled(f"{operator}/{file}.yaml").plan()
    return valid_case(next(each for each in plan if each.identifier == name)).with_inputs()


def verdict(tested: Case, outcome: Outcome, deviations: Deviations = ONNX) -> Verdict:
    conclusion = Conclusion(run_case, deviations=deviations)
    return conclusion.excused(tested, outcome, conclusion.judge(tested, outcome))


def reference_output(tested: Case) -> Array:
    outcome = run_case(tested)
    assert isinstance(outcome, Outputs)
    return next(iter(outcome.arrays.values())).copy()


MAXIMUM: Final = "element_wise_max/matrix/special-values[DataType=FLOAT32]"


def test_only_a_maximum_of_nan_may_be_nan() -> None:
    tested = case(MAXIMUM)
    output = reference_output(tested)
    nan = np.isnan(tested.input("ATensor")) | np.isnan(tested.input("BTensor"))
    output[nan] = np.nan
    waived = verdict(tested, Outputs({"OutputTensor": output}))
    assert waived.status is Status.WAIVED
    assert waived.reason is not None
    assert waived.reason.kind is ReasonKind.DEVIATION
    assert waived.reason.message.startswith("onnx-nan-of-maximum: ")
    output[~nan] = np.float32(-7)
    assert not nan.all()
    assert verdict(tested, Outputs({"OutputTensor": output})).status is Status.FAILED


def test_only_onnx_runtime_has_the_deviations_of_onnx() -> None:
    assert deviations_of(Environment("directml", "1.15.4")) == Deviations()
    details = {"target": "onnx"}
    assert deviations_of(Environment("directml", "1.15.4", details=details)) == Deviations()
    assert deviations_of(Environment("onnxruntime", "1.20", details=details)) is ONNX
    tested = case(MAXIMUM)
    output = np.full_like(reference_output(tested), np.nan)
    assert verdict(tested, Outputs({"OutputTensor": output}), Deviations()).status is Status.FAILED


def test_sigmoids_are_waived_up_to_an_error() -> None:
    tested = case("activation_sigmoid/matrix/element-counts[Count=65,DataType=FLOAT32]")
    # The deviation waives relative errors of up to 0.001.
    for factor, status in ((1.0005, Status.WAIVED), (1.01, Status.FAILED)):
        outcome = Outputs({"OutputTensor": reference_output(tested) * np.float32(factor)})
        assert verdict(tested, outcome).status is status


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("element_wise_divide/boundary/int8-by-zero", Status.WAIVED),
        ("element_wise_divide/boundary/int32-smallest-by-minus-one", Status.FAILED),
        ("gather/boundary/index-beyond-axis-reads-next-row", Status.WAIVED),
        ("gather/boundary/indices-int64", Status.FAILED),
        ("gather_nd1/boundary/beyond-the-axis-into-the-next-row", Status.WAIVED),
        ("gather_nd1/boundary/whole-rows", Status.FAILED),
        ("graphs/captured/element-wise-multiply-element-wise-add-gather", Status.WAIVED),
        ("graphs/captured/cast-gather", Status.FAILED),
        ("reverse_subsequences/boundary/length-beyond-the-axis", Status.WAIVED),
        ("reverse_subsequences/boundary/whole-length", Status.FAILED),
        (f"gru/boundary/sequence-longer-than-the-input[{FORWARD_GRU}]", Status.WAIVED),
        (f"gru/boundary/sequence-of-length-0[{FORWARD_GRU}]", Status.FAILED),
    ],
)
def test_refusal_is_waived_only_for_refusable_inputs(name: str, status: Status) -> None:
    refusal = Rejection("Run", "Fail", message="indices element out of data bounds; by zero")
    assert verdict(case(name), refusal).status is status


@pytest.mark.parametrize(
    "name",
    [
        "activation_scaled_elu/boundary/subnormal-elements-of-float16",
        "element_wise_clip/boundary/float32-infinities-and-large-numbers",
        "element_wise_pow/boundary/float32-powers",
        "element_wise_sign/boundary/float32-special-numbers",
        "lp_normalization/boundary/root-of-squares",
    ],
)
def test_nan_of_ordinary_numbers_is_not_waived(name: str) -> None:
    tested = case(name)
    output = reference_output(tested)
    others = [a for a in tested.inputs().values() if a.shape == output.shape]
    ordinary = np.isfinite(output) & np.all([np.isfinite(a) & (a != 0) for a in others], axis=0)
    assert ordinary.any()
    output[ordinary] = np.nan
    assert verdict(tested, Outputs({"OutputTensor": output})).status is Status.FAILED


FUSED: Final = """
operator: GEMM
cases:
  - name: celu
    desc:
      ATensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [.inf, -2]}
      BTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [3]}
      CTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32, values: [-.inf, 7]}
      OutputTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32}
      TransA: NONE
      TransB: NONE
      Alpha: 1
      Beta: 1
      FusedActivation: {operator: ACTIVATION_CELU, Alpha: 1}
"""


def test_only_a_fused_activation_of_nan_may_be_nan(tmp_path: Path) -> None:
    file = tmp_path / "gemm.yaml"
    file.write_text(FUSED, encoding="utf-8")
    [planned] = load_suite([file]).plan()
    tested = valid_case(planned).with_inputs()
    output = reference_output(tested)
    # infinity - infinity is NaN, and DirectML's CELU of NaN is 0.
    assert output.reshape(-1).tolist() == [0, 1]
    output[0, 0, 0] = np.nan
    assert verdict(tested, Outputs({"OutputTensor": output})).status is Status.WAIVED
    output[0, 0, 1] = np.nan
    assert verdict(tested, Outputs({"OutputTensor": output})).status is Status.FAILED


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("average_pooling/boundary/nothing-but-padding-left-out", Status.WAIVED),
        ("average_pooling/boundary/not-a-number-and-infinities", Status.FAILED),
    ],
)
def test_only_the_average_of_no_element_may_be_0(name: str, status: Status) -> None:
    tested = case(name)
    output = reference_output(tested)
    output[~np.isfinite(output)] = 0
    assert verdict(tested, Outputs({"OutputTensor": output})).status is status


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("rnn/combinations/pairs-45", Status.WAIVED),
        ("rnn/boundary/saturated[DataType=FLOAT32,Direction=FORWARD]", Status.FAILED),
    ],
)
def test_only_a_layer_of_infinite_input_may_be_infinite(name: str, status: Status) -> None:
    tested = case(name)
    outcome = run_case(tested)
    assert isinstance(outcome, Outputs)
    infinite = {name: np.full_like(array, -np.inf) for name, array in outcome.arrays.items()}
    assert verdict(tested, Outputs(infinite)).status is status


def test_only_remainders_by_0_may_differ() -> None:
    tested = case("element_wise_modulus_floor/questions/ends-of-words[DataType=UINT8,Seed=0]")
    for divisor, status in ((0, Status.WAIVED), (1, Status.FAILED)):
        output = reference_output(tested)
        at_divisor = tested.input("BTensor") == divisor
        assert at_divisor.any()
        output[at_divisor] = 7
        assert verdict(tested, Outputs({"OutputTensor": output})).status is status


def test_interpolated_integers_may_be_rounded_to_the_nearest() -> None:
    tested = case("resample/boundary/interpolated-integers-lose-their-fraction")
    # DirectML truncates the interpolated numbers.
    nearest = np.array([0, -1, -2, -4, -8, 18, 73, 100], np.int8)
    assert (nearest != reference_output(tested)).any()
    assert verdict(tested, Outputs({"OutputTensor": nearest})).status is Status.WAIVED
    nearest[-1] -= 1
    assert verdict(tested, Outputs({"OutputTensor": nearest})).status is Status.FAILED


def test_attributes_of_float16_operators_may_be_rounded_to_float16() -> None:
    tested = case("activation_leaky_relu/matrix/in-place[DataType=FLOAT16]")
    number = tested.input("InputTensor").astype(np.float32)
    for alpha, status in ((np.float16(0.01), Status.WAIVED), (0.0101, Status.FAILED)):
        output = np.where(number < 0, number * np.float32(alpha), number).astype(np.float16)
        assert verdict(tested, Outputs({"OutputTensor": output})).status is status


def test_only_clamped_infinity_minus_infinity_may_be_nan() -> None:
    # Only the product of element 0 overflows: -infinity + infinity is NaN before it is clamped.
    tested = case("activation_hard_sigmoid/boundary/product-that-overflows-beside-an-infinite-beta")
    output = reference_output(tested)
    for at, status in ((0, Status.WAIVED), (1, Status.FAILED)):
        wrong = output.copy()
        wrong[at] = np.nan
        assert verdict(tested, Outputs({"OutputTensor": wrong})).status is status


def test_only_inputs_with_nan_may_be_quantized_differently() -> None:
    for name, status in (
        ("nan-counts-for-no-range", Status.WAIVED),
        ("halves-to-even", Status.FAILED),
    ):
        tested = case(f"dynamic_quantize_linear/boundary/{name}")
        outcome = run_case(tested)
        assert isinstance(outcome, Outputs)
        arrays = {each: array * array.dtype.type(2) for each, array in outcome.arrays.items()}
        assert verdict(tested, Outputs(arrays)).status is status


@pytest.mark.parametrize(("values", "status"), [("-1, 4", Status.WAIVED), ("1, 4", Status.FAILED)])
@pytest.mark.parametrize(
    "after",
    [
        "{operator: ACTIVATION_RELU, desc: {InputTensor: root, OutputTensor: {}}}",
        "{operator: ELEMENT_WISE_MAX, desc: {ATensor: root, BTensor: x, OutputTensor: {}}}",
    ],
    ids=["relu", "max"],
)
def test_graph_maximum_may_be_nan_only_after_nan(
    tmp_path: Path, after: str, values: str, status: Status
) -> None:
    inputs = f"\n  x: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [{values}]}}"
    root = "{operator: ELEMENT_WISE_SQRT, desc: {InputTensor: x, OutputTensor: {}}}"
    tested = graph(tmp_path, inputs, f"\n  root: {root}\n  node: {after}")
    wrong = reference_output(tested)
    wrong[..., 0] = np.nan
    assert verdict(tested, Outputs({"y": wrong})).status is status


@pytest.mark.parametrize("scale", ["1.0e+30", ".inf"])
def test_huge_scale_excuses_no_wrong_integer(tmp_path: Path, scale: str) -> None:
    fields = f"""InputTensor: {{Sizes: [4], DataType: INT32, values: [1, 2, -3, 0]}},
        OutputTensor: {{Sizes: [4], DataType: INT32}}, ScaleBias: {{Scale: {scale}, Bias: 0}}"""
    tested = single(tmp_path, "ELEMENT_WISE_IDENTITY", fields)
    wrong = np.full(4, 5, np.int32)
    assert verdict(tested, Outputs({"OutputTensor": wrong})).status is Status.FAILED


QUANTIZED: Final = """
  quantize: {operator: DYNAMIC_QUANTIZE_LINEAR, desc: {InputTensor: x,
    OutputTensor: {DataType: UINT8, Sizes: [1, 1, 1, 2]},
    OutputScaleTensor: {DataType: FLOAT32, Sizes: [1, 1, 1, 1]},
    OutputZeroPointTensor: {DataType: UINT8, Sizes: [1, 1, 1, 1]}}}
"""
DEQUANTIZED: Final = f"""{QUANTIZED}
  node: {{operator: ELEMENT_WISE_DEQUANTIZE_LINEAR, desc: {{InputTensor: quantize.OutputTensor,
    ScaleTensor: {{from: quantize.OutputScaleTensor, Sizes: [1, 1, 1, 2], Strides: [0, 0, 0, 0]}},
    ZeroPointTensor: {{from: quantize.OutputZeroPointTensor, Sizes: [1, 1, 1, 2],
      Strides: [0, 0, 0, 0]}},
    OutputTensor: {{DataType: FLOAT32, Sizes: [1, 1, 1, 2]}}}}}}
"""


@pytest.mark.parametrize(
    ("values", "status"), [(".nan, 3", Status.WAIVED), ("1, 3", Status.FAILED)]
)
def test_dequantized_nan_is_waived_only_after_nan(
    tmp_path: Path, values: str, status: Status
) -> None:
    inputs = f"\n  x: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [{values}]}}"
    tested = graph(tmp_path, inputs, DEQUANTIZED)
    assert (
        verdict(tested, Outputs({"y": np.full((1, 1, 1, 2), np.nan, np.float32)})).status is status
    )


@pytest.mark.parametrize(
    ("tensor", "given", "status"),
    [
        ("OutputTensor", np.array([[[[7, 200]]]], np.uint8), Status.WAIVED),
        ("OutputZeroPointTensor", np.full((1, 1, 1, 1), 255, np.uint8), Status.WAIVED),
        ("OutputScaleTensor", np.full((1, 1, 1, 1), np.nan, np.float32), Status.WAIVED),
        ("OutputScaleTensor", np.full((1, 1, 1, 1), 0.5, np.float32), Status.FAILED),
    ],
)
def test_quantized_nan_may_be_any_integer(
    tmp_path: Path, tensor: str, given: Array, status: Status
) -> None:
    inputs = "\n  x: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [.nan, 3]}"
    tested = graph(tmp_path, inputs, QUANTIZED, f"quantize.{tensor}")
    assert verdict(tested, Outputs({"y": given})).status is status


@pytest.mark.parametrize(
    "file", sorted((schemas_directory() / "targets").glob("*.yaml")), ids=lambda path: path.stem
)
def test_file_of_a_target_is_valid(file: Path) -> None:
    data = read_document(file).data
    assert not list(Checker(bundled_schema("target")).iter_errors(data))
    known = {*operator_names(), GRAPHS}
    for each in data["deviations"]:
        assert set(each["operators"]) <= known, each["name"]


FILE: Final = """
target: onnx
deviations:
  - {name: one, operators: [TILE], elements: nan, says: The text of a page., link: "https://a.b"}
  - {name: two, operators: [TILE], elements: nan, says: The text of a page., link: "https://a.b"}
"""
"""Two deviations of one operator."""


def test_a_deviation_may_name_an_operator_as_the_header_does_or_in_small_letters(
    tmp_path: Path,
) -> None:
    path = tmp_path / "onnx.yaml"
    path.write_text(FILE.replace("[TILE]", "[tile, DML_OPERATOR_GEMM]"), encoding="utf-8")
    for each in read_deviations("onnx", path).deviations:
        assert each.scope.operators == frozenset({"TILE", "GEMM"})


def test_deviations_of_unknown_operators_are_refused_at_once_with_suggestions(
    tmp_path: Path,
) -> None:
    path = tmp_path / "onnx.yaml"
    text = FILE.replace("[TILE]", "[Conv]", 1).replace("[TILE]", "[TILE, TYLE]", 1)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidFilesError) as refused:
        read_deviations("onnx", path)
    assert [(each.line, each.message) for each in refused.value.problems] == [
        (4, "the catalogue has no operator Conv; did you mean CONVOLUTION?"),
        (5, "the catalogue has no operator TYLE; did you mean TILE?"),
    ]


PADDED: Final = (
    "convolution/matrix/lines[Stride=1,Dilation=2,Kernel=2,Start=1,End=1,Behind=1,GroupCount=2,"
    "Mode=CONVOLUTION,Direction=BACKWARD,DataType=FLOAT16]"
)


def test_output_padding_may_hold_removed_elements() -> None:
    tested = case(PADDED)
    output = reference_output(tested)
    assert not output[..., -1].any(), "DirectML leaves output padding 0"
    without_padding = {"OutputPadding": (0,), "EndPadding": (0,)}
    output[...] = reference_output(replace(tested, desc={**tested.desc, **without_padding}))
    assert output[..., -1].all()
    assert verdict(tested, Outputs({"OutputTensor": output})).status is Status.WAIVED
    output[0, 0, -1] += 9
    assert verdict(tested, Outputs({"OutputTensor": output})).status is Status.FAILED


def test_elements_gathered_beyond_the_axis_may_have_any_value() -> None:
    tested = case("gather/boundary/index-beyond-axis-reads-next-row")
    for value in (0, 77):
        output = np.full_like(reference_output(tested), value)
        assert verdict(tested, Outputs({"OutputTensor": output})).status is Status.WAIVED


def test_gather_with_indices_for_each_row_excuses_nothing() -> None:
    tested = case("gather/boundary/own-indices-for-leading-dimensions")
    outcome = Outputs({"OutputTensor": np.full_like(reference_output(tested), 77)})
    assert verdict(tested, outcome).status is Status.FAILED


@pytest.mark.parametrize(("index", "status"), [(0, Status.FAILED), (2, Status.WAIVED)])
def test_single_index_excuses_only_beyond_the_axis(
    tmp_path: Path, index: int, status: Status
) -> None:
    tested = described(
        tmp_path,
        "GATHER",
        f"{tensor('InputTensor', '5, 6', sizes='[1, 2]')}, "
        f"{tensor('IndicesTensor', str(index), 'UINT32', '[1, 1]')}, "
        "OutputTensor: {Sizes: [1, 1], DataType: FLOAT32}, Axis: 1, IndexDimensions: 0",
    )
    outcome = Outputs({"OutputTensor": np.full((1, 1), 77, np.float32)})
    assert verdict(tested, outcome).status is status


def test_attribute_that_overflows_gives_no_warning(tmp_path: Path) -> None:
    """A Bias of 3e38 is infinite in FLOAT16; pytest turns warnings into errors."""
    tested = described(
        tmp_path,
        "ACTIVATION_SHRINK",
        f"{tensor('InputTensor', '1, -1', 'FLOAT16')}, "
        "OutputTensor: {Sizes: [2], DataType: FLOAT16}, Bias: 3e38, Threshold: -0.5",
    )
    outcome = Outputs({"OutputTensor": np.full(2, 7, np.float16)})
    assert verdict(tested, outcome).status is Status.FAILED


@pytest.mark.parametrize("batches", [1, 2])
def test_valid_indices_of_batches_excuse_no_element(batches: int) -> None:
    tested = case(
        f"gather_nd1/boundary/negative-indices-of-batches[Batch={batches},IndexType=INT32]"
    )
    right = reference_output(tested)
    for at in range(right.size):
        output = right.copy()
        output.flat[at] += 77
        assert verdict(tested, Outputs({"OutputTensor": output})).status is Status.FAILED, at


def test_zero_to_the_power_of_zero_may_be_1() -> None:
    tested = case("graphs/rewrites-conditions/replace-power-by-one-or-zero--x-is-not-zero")
    powers = np.ones((1, 1, 1, 5), np.float32)
    # For x = 1, 0, 3, -4 and 0, DirectML's x ** 0 is 1, 0, 1, 1 and 0.
    assert verdict(tested, Outputs({"y": powers})).status is Status.WAIVED
    powers[..., 2] = 0
    assert verdict(tested, Outputs({"y": powers})).status is Status.FAILED


def test_softplus_may_be_infinite_only_if_its_product_overflows() -> None:
    tested = case(
        "element_wise_add1/combinations/pairs-1[Values=1x31x1x5x31xFLOAT32x0x1:5xchannels-lastxnone"
        "x-300:100:5xchannels-lastxchannels-lastxACTIVATION_SOFTPLUS:1.5]"
    )
    output = reference_output(tested)
    output[output > 3e38] = np.inf  # Near 3.4e38, the largest FLOAT32.
    assert verdict(tested, Outputs({"OutputTensor": output})).status is Status.WAIVED
    output.flat[np.flatnonzero(output < 100)[0]] = np.inf
    assert verdict(tested, Outputs({"OutputTensor": output})).status is Status.FAILED
