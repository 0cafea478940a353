"""Findings and deviations of WebNN explain results of Chromium 153, and no other wrong results.

The tested code is in `webnn.py` and `webnn_steps.py` in `dmlconf/faults/runtimes/`, in
`findings.py`, `deviations.py` and `deviating_elements.py` in `dmlconf/excuses/`, and in
`schemas/findings/` and `schemas/targets/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Environment, Outputs
from dmlconf.excuses.deviations import read_deviations
from dmlconf.excuses.findings import findings_of
from dmlconf.judging.conclusion import Conclusion
from dmlconf.verdicts.verdict import Status, Verdict
from tests.excuses.test_deviations import case, reference_output
from tests.excuses.test_formulas_as_written import described, tensor

INF: Final = np.inf
NAN: Final = np.nan
GREATEST: Final = float(np.finfo(np.float32).max)
CHROMIUM: Final = Environment("webnn", "153.0.8010.0", details={"target": "webnn"})


def verdict_on_changed(name: str, *changes: Mapping[int, float]) -> Verdict:
    """Return the verdict on the right output with some elements changed, by their index."""
    tested = case(name)
    output = reference_output(tested)
    for changed in changes:
        for index, value in changed.items():
            output.reshape(-1)[index] = value
    conclusion = Conclusion(
        run_case, deviations=read_deviations("webnn"), findings=findings_of(CHROMIUM)
    )
    outcome = Outputs({"OutputTensor": output})
    return conclusion.excused(tested, outcome, conclusion.judge(tested, outcome))


GEMM: Final = (
    "gemm/combinations/pairs-1[Values=1031x17xFLOAT32x0x-infximplicitx17x9xnonex-2:2:2ximplicit"
    "x1031x9x-3:3:3ximplicitximplicitxNONExNONEx0.5x0.25xACTIVATION_LEAKY_RELU:0.25]"
)

FLUSHED: Final[Mapping[int, float]] = {}
"""Stands for zeros in place of the last two subnormal elements."""

# A case, a finding, the wrong elements of Chromium by index, and another wrong element.
FINDINGS: Final = [
    (
        "average_pooling/boundary/not-a-number-and-infinities",
        "webnn-averages-of-nan",
        {0: -INF, 4: -INF},
        {1: 1.75},
    ),
    (
        "element_wise_log/boundary/subnormal-scale[DataType=FLOAT16]",
        "webnn-products-with-subnormal-numbers",
        {0: NAN, 2: -INF},
        {0: -INF},
    ),
    (
        "max_pooling2/boundary/nan-before-a-number-with-padding",
        "webnn-maxima-of-infinities-with-padding",
        {2: 0},
        {2: -2},
    ),
    (
        "gemm/boundary/nan-and-infinity-in-one-row[DataType=FLOAT16]",
        "webnn-products-that-are-clamped",
        {0: INF, 1: INF, 5: INF},
        {6: 12},
    ),
    (
        "lp_pooling/boundary/not-a-number-and-infinities",
        "webnn-root-of-infinity",
        {2: NAN, 3: NAN, 4: NAN, 5: NAN, 6: NAN},
        {1: 3},
    ),
    (
        "element_wise_constant_pow/boundary/float32-special-numbers",
        "webnn-constant-powers-that-are-clamped",
        {2: GREATEST, 3: -GREATEST},
        {3: GREATEST},
    ),
    (
        "element_wise_cos/boundary/beyond-100-pi",
        "webnn-large-angles",
        {2: -4901.76, 3: NAN, 4: NAN},
        {5: 0.5},
    ),
    (
        "element_wise_exp/boundary/float32-overflow",
        "webnn-exponential-of-nan",
        {0: INF},
        {0: 3.3e38},
    ),
    (
        "scatter_nd/matrix/special-values[DataType=FLOAT32]",
        "webnn-scattered-zeros",
        FLUSHED,
        {0: 0.25},
    ),
]


@pytest.mark.parametrize(("name", "finding", "of_chromium", "other"), FINDINGS)
def test_finding_explains_only_the_elements_of_chromium(
    name: str, finding: str, of_chromium: Mapping[int, float], other: Mapping[int, float]
) -> None:
    if of_chromium is FLUSHED:
        output = reference_output(case(name)).reshape(-1)
        small = (np.abs(output) < np.finfo(output.dtype).tiny) & (output != 0)
        of_chromium = {int(index): 0.0 for index in np.flatnonzero(small)[-2:]}
        assert len(of_chromium) == 2
    verdict = verdict_on_changed(name, of_chromium)
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.message.startswith(f"known finding {finding} "), verdict
    verdict = verdict_on_changed(name, of_chromium, other)
    assert verdict.reason is not None
    assert not verdict.reason.message.startswith("known finding"), verdict


def test_finding_explains_an_activation_of_clamped_products() -> None:
    tested = case(GEMM)
    before = reference_output(tested)
    # Chromium clamps infinite products to the greatest numbers; LEAKY_RELU divides negatives by 4.
    of_chromium = {
        index: -GREATEST / 4 if value < 0 else GREATEST
        for index, value in enumerate(before.reshape(-1))
    }
    verdict = verdict_on_changed(GEMM, of_chromium)
    assert verdict.reason is not None
    assert verdict.reason.message.startswith("known finding webnn-products-that-are-clamped ")
    verdict = verdict_on_changed(GEMM, of_chromium, {0: 1.0})
    assert verdict.reason is not None
    assert not verdict.reason.message.startswith("known finding")


SPECIALS: Final = "quantize/boundary/specials[FloatType=FLOAT16,IntegerType=INT8,Scale=0.75]"
ROWS_OF_1031: Final = (
    "argmin/combinations/pairs-4[Values=1x3x2x1x2x1031xFLOAT32x1:5xchannels-lastx1x1x2x1x2x1031x1"
    "xINCREASING]"
)
# A case, wrong elements that the specification permits, and one that it does not permit, if any.
DEVIATIONS: Final = [
    ("argmax/boundary/nan-first-keeps-its-place", {0: 2}, None),
    (ROWS_OF_1031, {50: 2, 115: 1}, {49: 2}),  # Element 50 is of NaN, -0.44 and -0.62.
    ("cast/boundary/floats-are-clamped-to-int32", {9: 2147483647}, {0: 1}),  # Element 9 is of NaN.
    (SPECIALS, {9: 127, 22: 127, 35: 127}, {2: -128}),  # Elements of NaN; 2 is of infinity.
    ("gather_nd1/boundary/beyond-the-axis-into-the-next-row", {0: 3}, None),
    ("gather/boundary/index-keeps-low-32-bits", {0: 3}, None),
]


@pytest.mark.parametrize(("name", "permitted", "other"), DEVIATIONS)
def test_only_results_that_webnn_leaves_open_are_waived(
    name: str, permitted: Mapping[int, float], other: Mapping[int, float] | None
) -> None:
    assert verdict_on_changed(name, permitted).status is Status.WAIVED
    if other is not None:
        assert verdict_on_changed(name, permitted, other).status is Status.FAILED


@pytest.mark.parametrize(
    "name", ["gather/boundary/indices-int64", "gather_nd1/boundary/whole-rows"]
)
def test_index_within_the_axis_excuses_no_wrong_result(name: str) -> None:
    assert verdict_on_changed(name, {0: 77}).status is Status.FAILED


def test_result_that_two_findings_give_alike_is_explained(tmp_path: Path) -> None:
    """Chromium leaves out C if Beta is 0, and its softplus of -infinity and of NaN is 0."""
    desc = (
        f"{tensor('ATensor', '1', sizes='[1, 1]')}, "
        f"{tensor('BTensor', '-.inf', sizes='[1, 1]')}, "
        f"{tensor('CTensor', '.nan', sizes='[1, 1]')}, "
        "OutputTensor: {Sizes: [1, 1], DataType: FLOAT32}, TransA: NONE, TransB: NONE, "
        "Alpha: 1, Beta: 0, FusedActivation: {operator: ACTIVATION_SOFTPLUS, Steepness: 2}"
    )
    tested = described(tmp_path, "GEMM", desc)
    conclusion = Conclusion(run_case, findings=findings_of(CHROMIUM))
    for value, named in ((0, True), (1, False)):
        outcome = Outputs({"OutputTensor": np.full((1, 1), value, np.float32)})
        verdict = conclusion.excused(tested, outcome, conclusion.judge(tested, outcome))
        assert verdict.status is Status.FAILED
        assert verdict.reason is not None
        assert verdict.reason.message.startswith("known finding ") is named


def test_sigmoid_loses_a_subnormal_step_where_exp_is_far_from_subnormal(tmp_path: Path) -> None:
    """Of e^-79.712 = 2^-115 (1 + t + ...), t is -7e-5, and 2^-115 t is subnormal."""
    desc = f"{tensor('InputTensor', '-79.712')}, OutputTensor: {{Sizes: [1], DataType: FLOAT32}}"
    tested = described(tmp_path, "ACTIVATION_SIGMOID", desc)
    conclusion = Conclusion(run_case, findings=findings_of(CHROMIUM))
    for value, named in ((2.0**-115, True), (2.0**-114, False)):
        outcome = Outputs({"OutputTensor": np.array([value], np.float32)})
        verdict = conclusion.excused(tested, outcome, conclusion.judge(tested, outcome))
        assert verdict.status is Status.FAILED
        assert verdict.reason is not None
        assert verdict.reason.message.startswith("known finding ") is named


def test_resampling_of_rows_and_channels_raises_no_error(tmp_path: Path) -> None:
    """The resized axes are 1 and 2, and not 2 and 3."""
    desc = (
        f"{tensor('InputTensor', '1, 2, 3, 4', sizes='[1, 2, 2, 1]')}, "
        "OutputTensor: {Sizes: [1, 4, 4, 1], DataType: FLOAT32}, InterpolationMode: LINEAR, "
        "Scales: [1, 2, 2, 1]"
    )
    tested = described(tmp_path, "RESAMPLE", desc)
    conclusion = Conclusion(run_case, findings=findings_of(CHROMIUM))
    outcome = Outputs({"OutputTensor": np.full((1, 4, 4, 1), 7, np.float32)})
    verdict = conclusion.excused(tested, outcome, conclusion.judge(tested, outcome))
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert not verdict.reason.message.startswith("known finding ")
