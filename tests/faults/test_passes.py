"""The known fault of FLOAT16 sums and means in DirectML 1.8.0 to 1.9.1 is recognised.

These versions compute sums and means in two passes, and truncate what the first pass gives. Waived
and measured outputs are those of DirectML 1.8.0 and 1.9.1, unless a test names another version.

The tested code is in `dmlconf/faults/passes.py` and `schemas/known-faults.yaml`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case
from dmlconf.faults.passes import first_pass_truncated
from dmlconf.reference.evaluation import evaluate
from dmlconf.resources import cases_directory
from dmlconf.verdicts.verdict import Status
from tests.faults.user_cases import case_of, outputs_of, status_and_fault
from tests.graphs.suites import graph_case
from tests.truncation import toward_zero

FAULT_OF_MEANS = "float16-mean-along-an-inner-axis"
FAULT_OF_TRAINING = "float16-means-of-training-held-in-parts"

SUM = (
    "{InputTensor: {Sizes: [4, 5], DataType: FLOAT16, values: [16384, 16384, 16384, 16384, 16384, "
    "-16384, -16384, -16384, -16384, -16384, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0]}, "
    "OutputTensor: {Sizes: [1, 5], DataType: FLOAT16}, Axes: [0], Function: FUNCTION}"
)
"""The first pass adds rows 0 and 2, and FLOAT16 loses the 1 of 16384 + 1."""


@pytest.mark.parametrize(("function", "right"), [("SUM", 1), ("AVERAGE", 0.25)])
def test_1_lost_in_the_first_pass_is_waived(function: str, right: float, tmp_path: Path) -> None:
    case = case_of(tmp_path, "REDUCE", SUM.replace("FUNCTION", function))
    given = outputs_of(case, {"OutputTensor": [0] * 5})
    assert status_and_fault(case, given, "1.9.1") == (Status.WAIVED, FAULT_OF_MEANS)
    assert status_and_fault(case, given, "1.10.1") == (Status.FAILED, "")
    for wrong in (2 * right, -right):
        other = outputs_of(case, {"OutputTensor": [0, 0, 0, 0, wrong]})
        assert status_and_fault(case, other, "1.9.1") == (Status.FAILED, ""), wrong
    all_right = outputs_of(case, {"OutputTensor": [right] * 5})
    assert status_and_fault(case, all_right, "1.9.1")[0] is Status.PASSED


def test_1_lost_in_float32_is_not_waived(tmp_path: Path) -> None:
    desc = SUM.replace("FUNCTION", "SUM").replace("FLOAT16", "FLOAT32")
    case = case_of(tmp_path, "REDUCE", desc)
    assert first_pass_truncated(case) is None
    zeros = outputs_of(case, {"OutputTensor": [0] * 5})
    assert status_and_fault(case, zeros, "1.9.1") == (Status.FAILED, "")


def test_sum_without_axes_is_not_explained(tmp_path: Path) -> None:
    desc = SUM.replace("FUNCTION", "SUM").replace("[1, 5]", "[4, 5]").replace("[0]", "[]")
    case = case_of(tmp_path, "REDUCE", desc)
    assert status_and_fault(case, evaluate(case), "1.9.1")[0] is Status.PASSED
    zeros = outputs_of(case, {"OutputTensor": [0] * 20})
    assert status_and_fault(case, zeros, "1.9.1") == (Status.FAILED, "")


FACTORS = (
    "{InputTensor: {Sizes: [8, 3], DataType: FLOAT16, values: [1.2, 1.3, -0.1, -1, -2, 0.7, "
    "-0.1, 1, -0.5, 1.1, -0.9, 1.2, 0.9, -0.3, 0.2, 0.7, -1.2, 0.2, 1.2, -0.9, 1.2, 0.7, 1.4, "
    "-0.7]}, OutputTensor: {Sizes: [1, 3], DataType: FLOAT16}, Axes: [0], Function: MULTIPLY}"
)


def test_products_that_passes_truncate_are_waived(tmp_path: Path) -> None:
    case = case_of(tmp_path, "REDUCE", FACTORS)
    products = [0.0697021484375, -1.060546875, -0.0014095306396484375]
    given = outputs_of(case, {"OutputTensor": products})
    assert status_and_fault(case, given, "1.8.0") == (Status.WAIVED, FAULT_OF_MEANS)
    other = outputs_of(case, {"OutputTensor": [products[0], -1.0586, products[2]]})
    assert status_and_fault(case, other, "1.8.0") == (Status.FAILED, "")


NORMALIZED = (
    "{InputTensor: {Sizes: [4, 4], DataType: FLOAT16, values: [100.125, -3, 7.3, 1, "
    "-100.3125, 5, -2.7, 1, 0.7, -2.4, 0.1, 2, -0.4, 0.6, -4.6, 2]}, "
    "ScaleTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [100]}, "
    "BiasTensor: {Sizes: [1, 1], DataType: FLOAT16, values: [0.5]}, "
    "OutputTensor: {Sizes: [4, 4], DataType: FLOAT16}, Axes: [0], NormalizeVariance: true, "
    "Epsilon: 0.5}"
)

GIVEN_BY_DIRECTML = [
    *(141.75, -93.5, 159.5, -57.21875),
    *(-141.0, 153.0, -59.0, -57.21875),
    *(1.443359375, -75.0, 2.150390625, 58.21875),
    *(-0.10845947265625, 17.453125, -100.5625, 58.21875),
]


def test_normalization_by_a_mean_of_two_passes_is_waived(tmp_path: Path) -> None:
    case = case_of(tmp_path, "MEAN_VARIANCE_NORMALIZATION1", NORMALIZED)
    assert status_and_fault(
        case, outputs_of(case, {"OutputTensor": GIVEN_BY_DIRECTML}), "1.8.0"
    ) == (
        Status.WAIVED,
        FAULT_OF_MEANS,
    )
    for at, wrong in ((8, 1.47), (12, -0.13), (0, 142.5)):
        other = [*GIVEN_BY_DIRECTML]
        other[at] = wrong
        arrays = outputs_of(case, {"OutputTensor": other})
        assert status_and_fault(case, arrays, "1.8.0") == (Status.FAILED, ""), wrong


DIFFERENCES = (
    "{InputTensor: {Sizes: [4, 4], DataType: FLOAT16, values: [1.125, -0.3, 0.73, -1, -0.3125, "
    "0.5, -2.7, 1, 0.7, -0.24, 0.1, 0.6, -0.4, 0.6, -0.46, 0.2]}, FusedActivation: {activation}, "
    "OutputTensor: {Sizes: [4, 4], DataType: FLOAT16}, Axes: [0], NormalizeVariance: false, "
    "Epsilon: 0.5}"
)


@pytest.mark.parametrize(
    ("activation", "given"),
    [
        (
            "{operator: ACTIVATION_SCALED_TANH, Alpha: 100, Beta: 1}",
            [
                *(68.875, -41.34375, 86.4375, -83.3125),
                *(-53, 34.5, -97.125, 66.375),
                *(39.84375, -36.25, 59.25, 38),
                *(-59, 43, 12.140625, 0.0122070312),
            ],
        ),
        (
            "{operator: ACTIVATION_LEAKY_RELU, Alpha: 3.5}",
            [
                *(0.846679688, -1.5390625, 1.31152344, -4.19921875),
                *(-2.06640625, 0.360107422, -7.41015625, 0.799804688),
                *(0.422119141, -1.32910156, 0.681640625, 0.400146484),
                *(-2.37109375, 0.460205078, 0.122070312, 0.000122070312),
            ],
        ),
    ],
    ids=["truncated", "not truncated"],
)
def test_input_of_a_fused_activation_may_be_truncated(
    activation: str, given: list[float], tmp_path: Path
) -> None:
    desc = DIFFERENCES.replace("{activation}", activation)
    case = case_of(tmp_path, "MEAN_VARIANCE_NORMALIZATION1", desc)
    computed = first_pass_truncated(case)
    assert computed is not None
    expected = outputs_of(case, {"OutputTensor": given})["OutputTensor"]
    np.testing.assert_array_equal(computed.outputs["OutputTensor"], expected)


SIDE_BY_SIDE = """
inputs:
  x: {Sizes: [5, 4], Strides: [STRIDES], DataType: FLOAT16, values: [16384, -16384, 1, 0,
      16384, -16384, 1, 0, 16384, -16384, 1, 0, 16384, -16384, 1, 0, 16384, -16384, 1, 0]}
nodes:
  n: {operator: MEAN_VARIANCE_NORMALIZATION1,
      desc: {InputTensor: x, Axes: [1], NormalizeVariance: false, Epsilon: 0,
             OutputTensor: {Sizes: [5, 4], DataType: FLOAT16}}}
outputs: {y: n}
"""


@pytest.mark.parametrize(("strides", "status"), [("1, 5", Status.WAIVED), ("4, 1", Status.FAILED)])
def test_mean_is_waived_only_if_its_numbers_lie_apart(
    strides: str, status: Status, tmp_path: Path
) -> None:
    """Numbers that lie side by side are added in one pass, which loses no 1."""
    case = graph_case(tmp_path, SIDE_BY_SIDE.replace("STRIDES", strides))
    rows = np.tile(np.array([16384, -16384, 1, 0], np.float16), (5, 1))
    assert status_and_fault(case, {"y": rows}, "1.9.1")[0] is status


@pytest.mark.parametrize(
    ("axis", "challenge", "means", "variances"),
    [
        pytest.param(
            "DimensionCount=3,Axis=2",
            2,
            [0.35498046875, 0.1143798828125, 1.201171875, 0.53759765625, 0.388671875],
            [0.837890625, 1.140625, 1.046875, 2.064453125, 1.5498046875],
            id="two passes",
        ),
        pytest.param(
            "DimensionCount=4,Axis=0",
            1,
            [1.009765625, 0.07659912109375, 0.72607421875, 0.38037109375, 0.79638671875],
            [1.884765625, 1.72265625, 2.392578125, 2.0390625, 2.27734375],
            id="squares in FLOAT16",
        ),
    ],
)
def test_truncated_means_and_variances_of_training_are_waived(
    axis: str, challenge: int, means: list[float], variances: list[float]
) -> None:
    """The normalized output is that of the reference."""
    folder = cases_directory() / "batch_normalization_training"
    name = f"batch_normalization_training/matrix[DataType=FLOAT16,{axis}]"
    plan = load_suite([folder], challenge=challenge).plan()
    case = build(next(planned for planned in plan if planned.identifier == name))
    given = {
        **evaluate(case),
        **{
            output: np.array(values, np.float16).reshape(case.outputs()[output].Sizes)
            for output, values in (
                ("OutputMeanTensor", means),
                ("OutputVarianceTensor", variances),
            )
        },
    }
    assert status_and_fault(case, given, "1.9.1") == (Status.WAIVED, FAULT_OF_TRAINING)
    assert status_and_fault(case, given, "1.10.1") == (Status.FAILED, "")
    for output in case.outputs():
        wrong = given[output].copy()
        wrong.flat[-1] *= 1.01
        assert status_and_fault(case, {**given, output: wrong}, "1.9.1")[0] is Status.FAILED


FAR_APART = (
    "{InputTensor: {Sizes: [2, 2, 3], DataType: FLOAT16, "
    "values: [-342.75, -320.75, -227.125, 1, 2, 3, 230.625, -311.5, -307.75, 4, 5, 6]}, "
    "ScaleTensor: {Sizes: [1, 2, 1], DataType: FLOAT16, values: [1, 1]}, "
    "BiasTensor: {Sizes: [1, 2, 1], DataType: FLOAT16, values: [0, 0]}, "
    "OutputTensor: {Sizes: [2, 2, 3], DataType: FLOAT16}, "
    "OutputMeanTensor: {Sizes: [1, 2, 1], DataType: FLOAT16}, "
    "OutputVarianceTensor: {Sizes: [1, 2, 1], DataType: FLOAT16}, Epsilon: 0.5}"
)
"""A mean of two squares exceeds 65504, to which FLOAT16 truncates it."""


@pytest.mark.parametrize(
    ("mean", "variance", "status"),
    [
        (-213.125, 26896, Status.WAIVED),
        (-213.125, 26000, Status.FAILED),
        (-210, 26896, Status.FAILED),
    ],
)
def test_one_pass_mean_with_two_pass_variance_is_waived(
    tmp_path: Path, mean: float, variance: float, status: Status
) -> None:
    case = case_of(tmp_path, "BATCH_NORMALIZATION_TRAINING", FAR_APART)
    means, variances = [mean, 3.5], [variance, 2.916]
    centred = case.inputs()["InputTensor"] - np.reshape(means, (1, 2, 1))
    quotients = centred / np.sqrt(np.reshape(variances, (1, 2, 1)) + 0.5)
    given = outputs_of(
        case,
        {
            "OutputTensor": toward_zero(quotients).ravel().tolist(),
            "OutputMeanTensor": means,
            "OutputVarianceTensor": variances,
        },
    )
    assert status_and_fault(case, given, "1.8.0")[0] is status


def test_256_rows_are_added_in_two_blocks(tmp_path: Path) -> None:
    desc = """{Function: SUM, Axes: [0],
      InputTensor: {Sizes: [256, 128], DataType: FLOAT16,
                    fill: {uniform: {low: -1, high: 1, seed: 256}}},
      OutputTensor: {Sizes: [1, 128], DataType: FLOAT16}}"""
    measured = [
        *(-4.33984375, -3.212890625, -8.40625, -5.00390625),
        *(-2.482421875, 7.53515625, 4.2890625, -15.65625),
    ]
    computed = first_pass_truncated(case_of(tmp_path, "REDUCE", desc))
    assert computed is not None
    assert computed.others is not None
    candidates = [
        each.outputs["OutputTensor"].ravel()[:8].tolist() for each in (computed, *computed.others())
    ]
    assert measured in candidates


def test_axes_0_1_and_3_may_have_two_passes(tmp_path: Path) -> None:
    """DirectML loses the 0.5 of 2048 + 0.5 + 1 - 2048, so the mean of 288 elements is 1 / 288."""
    values = np.zeros((16, 9, 2, 2))
    values[0, 0, 0], values[1, 0, 0, 0], values[0, 1, 0, 1] = (2048, 1), 0.5, -2048
    desc = f"""{{NormalizeVariance: false, Axes: [0, 1, 3], Epsilon: 0.1,
      InputTensor: {{Sizes: [16, 9, 2, 2], DataType: FLOAT16, values: {values.ravel().tolist()}}},
      OutputTensor: {{Sizes: [16, 9, 2, 2], DataType: FLOAT16}}}}"""
    computed = first_pass_truncated(case_of(tmp_path, "MEAN_VARIANCE_NORMALIZATION1", desc))
    assert computed is not None
    assert computed.others is not None
    candidates = [
        float(each.outputs["OutputTensor"][5, 5, 0, 0]) for each in (computed, *computed.others())
    ]
    assert toward_zero(-1 / 288) in candidates


def first_five_of_training(case: Case) -> list[list[list[float]]]:
    computed = first_pass_truncated(case)
    assert computed is not None
    assert computed.others is not None
    return [
        [
            each.outputs[output].ravel()[:5].tolist()
            for output in ("OutputTensor", "OutputMeanTensor", "OutputVarianceTensor")
        ]
        for each in (computed, *computed.others())
    ]


def test_mean_along_distant_axes_may_have_two_passes(
    tmp_path: Path,
) -> None:
    """Measured on DirectML 1.8.0."""
    desc = """{Epsilon: 0.5,
      InputTensor: {Sizes: [5, 17, 1, 3, 4, 1, 5], DataType: FLOAT16,
                    fill: {uniform: {low: -1, high: 1, seed: 3966265050}}},
      ScaleTensor: {Sizes: [1, 17, 1, 3, 4, 1, 1], DataType: FLOAT16,
                    fill: {uniform: {low: -6, high: 6, step: 0.125, seed: 3493202252}}},
      BiasTensor: {Sizes: [1, 17, 1, 3, 4, 1, 1], Strides: [204, 12, 12, 4, 1, 1, 0],
                   DataType: FLOAT16, fill: {uniform: {low: -1, high: 1, seed: 1742354498}}},
      OutputTensor: {Sizes: [5, 17, 1, 3, 4, 1, 5], DataType: FLOAT16},
      OutputMeanTensor: {Sizes: [1, 17, 1, 3, 4, 1, 1], DataType: FLOAT16},
      OutputVarianceTensor: {Sizes: [1, 17, 1, 3, 4, 1, 1], Strides: [1, 1, 17, 17, 51, 204, 204],
                             DataType: FLOAT16}}"""
    measured = [
        [-1.2353515625, -1.62890625, -0.2408447265625, -0.1788330078125, -0.81005859375],
        [-0.0863037109375, 0.124755859375, -0.11212158203125, 0.086181640625, 0.190185546875],
        [0.302978515625, 0.29150390625, 0.384765625, 0.337158203125, 0.32421875],
    ]
    case = case_of(tmp_path, "BATCH_NORMALIZATION_TRAINING", desc)
    assert measured in first_five_of_training(case)


def test_second_pass_of_a_mean_may_take_all_the_rest(
    tmp_path: Path,
) -> None:
    """DirectML 1.8.0 averages 64 of 320 rows at a time, in 3 columns, and then the 15 means."""
    desc = """{Epsilon: 0.1,
      InputTensor: {Sizes: [5, 4, 16, 1, 1, 8, 1, 3], DataType: FLOAT16,
                    fill: {uniform: {low: -1, high: 1, seed: 1475042865}}},
      ScaleTensor: {Sizes: [1, 1, 1, 1, 1, 8, 1, 1], DataType: FLOAT16,
                    fill: {uniform: {low: -8, high: 1, seed: 231949861}}},
      BiasTensor: {Sizes: [1, 1, 1, 1, 1, 8, 1, 1], DataType: FLOAT16,
                   fill: {uniform: {low: -1, high: 6, seed: 1887195903}}},
      OutputTensor: {Sizes: [5, 4, 16, 1, 1, 8, 1, 3], DataType: FLOAT16},
      OutputMeanTensor: {Sizes: [1, 1, 1, 1, 1, 8, 1, 1], DataType: FLOAT16},
      OutputVarianceTensor: {Sizes: [1, 1, 1, 1, 1, 8, 1, 1], DataType: FLOAT16}}"""
    measured = [
        [3.37109375, -1.7265625, 2.404296875, 2.6875, -1.544921875],
        [
            *(-0.040985107421875, 0.01378631591796875, 0.004787445068359375),
            *(-0.019195556640625, -0.017242431640625),
        ],
        [0.322265625, 0.338134765625, 0.322021484375, 0.331787109375, 0.33203125],
    ]
    case = case_of(tmp_path, "BATCH_NORMALIZATION_TRAINING", desc)
    assert measured in first_five_of_training(case)


def test_axis_of_size_1_keeps_no_others_apart(tmp_path: Path) -> None:
    """`measured` are the elements 0 and 15 that DirectML 1.9.1 gives."""
    desc = """{NormalizeVariance: true, Axes: [0, 1, 3], Epsilon: 0.01,
      InputTensor: {Sizes: [7, 16, 1, 2, 24, 1], Strides: [768, 48, 24, 24, 1, 5376],
                    DataType: FLOAT16, fill: {uniform: {low: -1, high: 1, seed: 1511315207}}},
      OutputTensor: {Sizes: [7, 16, 1, 2, 24, 1], Strides: [768, 48, 24, 24, 1, 5376],
                     DataType: FLOAT16}}"""
    measured = [-0.059173583984375, 1.642578125]
    computed = first_pass_truncated(case_of(tmp_path, "MEAN_VARIANCE_NORMALIZATION1", desc))
    assert computed is not None
    assert computed.others is not None
    candidates = [
        each.outputs["OutputTensor"].ravel()[[0, 15]].tolist()
        for each in (computed, *computed.others())
    ]
    assert measured in candidates


CHANNELS_LAST = """{Epsilon: 0.001,
  InputTensor: {Sizes: [5, 33, 2, 31], Strides: [2046, 1, 1023, 33], DataType: FLOAT16,
                fill: {uniform: {low: -1, high: 1, seed: 1}}},
  ScaleTensor: {Sizes: [5, 1, 1, 1], DataType: FLOAT16, values: [1, 1, 1, 1, 1]},
  BiasTensor: {Sizes: [5, 1, 1, 1], DataType: FLOAT16, values: [0, 0, 0, 0, 0]},
  FusedAddTensor: {Sizes: [5, 33, 2, 31], DataType: FLOAT16,
                   fill: {uniform: {low: -1, high: 1, seed: 2}}},
  OutputTensor: {Sizes: [5, 33, 2, 31], Strides: [2046, 1, 1023, 33], DataType: FLOAT16},
  OutputMeanTensor: {Sizes: [5, 1, 1, 1], DataType: FLOAT16},
  OutputVarianceTensor: {Sizes: [5, 1, 1, 1], DataType: FLOAT16}}"""


def test_variance_of_channels_last_may_have_two_passes(
    tmp_path: Path,
) -> None:
    """The normalized numbers are in FLOAT16 when FusedAddTensor is added."""
    measured = [
        [0.455322265625, 1.39453125, 1.8720703125, 0.3779296875, -0.529296875],
        [
            *(-0.0235748291015625, -0.0182037353515625, -0.018798828125, -0.0323486328125),
            -0.0011272430419921875,
        ],
        [0.32861328125, 0.341796875, 0.3330078125, 0.337890625, 0.333984375],
    ]
    case = case_of(tmp_path, "BATCH_NORMALIZATION_TRAINING", CHANNELS_LAST)
    assert measured in first_five_of_training(case)


def test_sum_next_to_a_float16_number_may_be_stored_as_either(tmp_path: Path) -> None:
    """FLOAT16 holds 1 as 1 or as 1 - 2^-11 before FusedAddTensor is added."""
    halves, ones = [1.5, -1.5, *[0] * 14], [1, -1] * 8
    desc = f"""{{Epsilon: 0, {FIELDS_OF_TRAINING},
      InputTensor: {{Sizes: [1, 1, 2, 16], DataType: FLOAT16, values: {halves + ones}}},
      FusedAddTensor: {{Sizes: [1, 1, 2, 16], DataType: FLOAT16, fill: {{constant: {{value: 3}}}}}},
      OutputTensor: {{Sizes: [1, 1, 2, 16], DataType: FLOAT16}}}}"""
    computed = first_pass_truncated(case_of(tmp_path, "BATCH_NORMALIZATION_TRAINING", desc))
    assert computed is not None
    assert computed.others is not None
    terms = [each.terms["OutputTensor"] for each in (computed, *computed.others()) if each.terms]
    stored = [each.stored for each in terms if each.stored is not None]
    assert stored
    for in_doubt in stored:
        assert (in_doubt[0, 0, 1] == 1).all()
        assert (in_doubt[0, 0, 0, :2] == 0).all()


def test_activation_scales_what_a_store_may_lose(tmp_path: Path) -> None:
    """FLOAT16 holds 2000 as 2000 or as 1999, and 0.001 times it is 2 or 1.999, but not 1.5."""
    desc = f"""{{Epsilon: 0, {FIELDS_OF_TRAINING.replace("values: [1, 1]", "values: [2000, 2000]")},
      InputTensor: {{Sizes: [1, 1, 2, 16], DataType: FLOAT16, values: {[1, -1] * 16}}},
      FusedAddTensor: {{Sizes: [1, 1, 2, 16], DataType: FLOAT16, fill: {{constant: {{value: 0}}}}}},
      FusedActivation: {{operator: ACTIVATION_LINEAR, Alpha: 0.001, Beta: 0}},
      OutputTensor: {{Sizes: [1, 1, 2, 16], DataType: FLOAT16}}}}"""
    case = case_of(tmp_path, "BATCH_NORMALIZATION_TRAINING", desc)
    computed = first_pass_truncated(case)
    assert computed is not None
    assert computed.others is not None
    terms = [each.terms["OutputTensor"] for each in (computed, *computed.others()) if each.terms]
    assert any(each.stored is not None for each in terms)
    for each in terms:
        # A store is off by up to 2^-10 of 1024, the power of two below 2000.
        assert each.stored is None or each.stored.max() <= 1.025
    outputs = evaluate(case)
    wrong = {**outputs, "OutputTensor": outputs["OutputTensor"] * np.float16(0.75)}
    assert status_and_fault(case, wrong, "1.9.1") == (Status.FAILED, "")


def test_second_passes_of_all_the_rest_displace_no_others(tmp_path: Path) -> None:
    """Axis 4 is summed first, then rows n and n + 64, then the 64 sums, and at last axis 2."""
    desc = """{Function: SUM, Axes: [0, 2, 4],
      InputTensor: {Sizes: [128, 8, 2, 1, 2], DataType: FLOAT16,
                    fill: {uniform: {low: -100, high: 100, seed: 1}}},
      OutputTensor: {Sizes: [1, 8, 1, 1, 1], DataType: FLOAT16}}"""
    case = case_of(tmp_path, "REDUCE", desc)
    sums = toward_zero(case.inputs()["InputTensor"].astype(np.float64).sum(4))
    pairs = toward_zero(sums[:64] + sums[64:])
    sums = toward_zero(toward_zero(pairs.sum(0)).sum(1)).ravel()
    computed = first_pass_truncated(case)
    assert computed is not None
    assert computed.others is not None
    ways = [each.outputs["OutputTensor"].ravel() for each in (computed, *computed.others())]
    assert sums.tolist() in [way.tolist() for way in ways]


def test_errors_of_float32_may_reach_the_next_float16_number(tmp_path: Path) -> None:
    """DirectML 1.9.0 gives a variance of 4.15625, where exact passes give 4.15234."""
    desc = """{Epsilon: 0.1,
      InputTensor: {Sizes: [8, 1, 3, 1, 1, 3, 5], Strides: [1, 40, 120, 40, 40, 40, 8],
                    DataType: FLOAT16, fill: {uniform: {low: -1, high: 6, seed: 1450084456}}},
      ScaleTensor: {Sizes: [1, 1, 1, 1, 1, 3, 5], DataType: FLOAT16,
                    fill: {uniform: {low: -8, high: 1, seed: 1302340832}}},
      BiasTensor: {Sizes: [1, 1, 1, 1, 1, 3, 5], DataType: FLOAT16,
                   fill: {uniform: {low: 0, high: 1, seed: 1192817962}}},
      OutputTensor: {Sizes: [8, 1, 3, 1, 1, 3, 5], Strides: [1, 40, 120, 40, 40, 40, 8],
                     DataType: FLOAT16},
      OutputMeanTensor: {Sizes: [1, 1, 1, 1, 1, 3, 5], DataType: FLOAT16},
      OutputVarianceTensor: {Sizes: [1, 1, 1, 1, 1, 3, 5], DataType: FLOAT16}}"""
    computed = first_pass_truncated(case_of(tmp_path, "BATCH_NORMALIZATION_TRAINING", desc))
    assert computed is not None
    assert computed.others is not None
    candidates = [
        each.outputs["OutputVarianceTensor"].ravel().tolist()
        for each in (computed, *computed.others())
    ]
    measured = [
        3.244140625,
        3.095703125,
        4.109375,
        5.1015625,
        2.810546875,
        4.4375,
        4.1328125,
        4.76171875,
        4.27734375,
        2.595703125,
        2.521484375,
        3.26953125,
        4.15625,
        3.830078125,
        3.189453125,
    ]
    assert measured in candidates


def test_mean_along_adjacent_axes_has_one_pass(tmp_path: Path) -> None:
    """The mean is 1.5; the means of the rows, truncated to FLOAT16, would make it 2."""
    desc = """{NormalizeVariance: false, Axes: [2, 3], Epsilon: 0,
      InputTensor: {Sizes: [1, 1, 2, 2], DataType: FLOAT16, values: [16384, 3, -16384, 3]},
      OutputTensor: {Sizes: [1, 1, 2, 2], DataType: FLOAT16}}"""
    case = case_of(tmp_path, "MEAN_VARIANCE_NORMALIZATION1", desc)
    less_by_2 = {"OutputTensor": [16376, 1, -16384, 1]}
    assert status_and_fault(case, outputs_of(case, less_by_2), "1.9.1")[0] is Status.FAILED


LARGE_SQUARES = (
    "{InputTensor: {Sizes: [1, 1, 2, 16], DataType: FLOAT16, values: "
    "[320, 0, 0, 0, 0, 0, 0, 0, -320, 0, 0, 0, 0, 0, 0, 0, "
    "320, -320, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}, "
    "OutputTensor: {Sizes: [1, 1, 2, 16], DataType: FLOAT16}, FIELDS, Epsilon: 1}"
)
"""FLOAT16 truncates 320**2 to 65504."""

FIELDS_OF_TRAINING = (
    "ScaleTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT16, values: [1, 1]}, "
    "BiasTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT16, values: [0, 0]}, "
    "OutputMeanTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT16}, "
    "OutputVarianceTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT16}"
)


@pytest.mark.parametrize(
    ("operator", "fields"),
    [
        ("BATCH_NORMALIZATION_TRAINING", FIELDS_OF_TRAINING),
        ("MEAN_VARIANCE_NORMALIZATION1", "Axes: [3], NormalizeVariance: true"),
    ],
)
def test_variance_averages_numbers_half_a_row_apart_first(
    operator: str, fields: str, tmp_path: Path
) -> None:
    case = case_of(tmp_path, operator, LARGE_SQUARES.replace("FIELDS", fields))
    computed = first_pass_truncated(case)
    assert computed is not None
    assert computed.others is not None
    apart, adjacent = toward_zero(320 / np.sqrt([65504 / 8 + 1, 2 * 320**2 / 16 + 1]))
    measured = np.zeros((1, 1, 2, 16))
    measured[..., 0, [0, 8]] = apart, -apart
    measured[..., 1, [0, 1]] = adjacent, -adjacent
    candidates = [each.outputs["OutputTensor"] for each in (computed, *computed.others())]
    assert any(np.array_equal(measured, outputs) for outputs in candidates)
