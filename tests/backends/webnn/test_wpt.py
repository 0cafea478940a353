"""WebNN's own tests pass as cases on WebNN, or `wpt_results.yaml` says why not.

WebNN's tests need a checkout of web-platform-tests (wpt). Other tests of this module check how
tests in WebNN's form are read and judged.

The tested code is in `schemas/translation/webnn.yaml`, in all modules of `dmlconf/translation/` and
`dmlconf/backends/webnn/`, in `tests/backends/webnn/wpt_results.py`, and in the modules of
`tests/backends/webnn/wpt_cases/`: `wpt_tests.py`, `recurrent.py`, `normalization.py` and
`windows.py`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
import yaml

from tests.backends.webnn.wpt_cases.conversions import as_case
from tests.backends.webnn.wpt_cases.wpt_tests import VARIABLE, Tensor, Tolerance, WptTest
from tests.backends.webnn.wpt_results import FILE, results


@pytest.mark.webnn
@pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no checkout of wpt")
def test_webnns_own_tests_pass_or_are_explained() -> None:
    actual = results(Path(os.environ[VARIABLE]))
    assert actual["failed"] == {}
    assert sum(actual["passed"].values()) > 1000
    expected = yaml.safe_load(FILE.read_text("utf-8"))
    if all(actual[name] == expected[name] for name in ("wpt", "chromium")):
        # `python -m tests.backends.webnn.wpt_results` writes the file again.
        assert actual == expected


UTILITIES: Final = """
const getPrecisionTolerance = () => ({metricType: "ULP", value: 1});
const webnn_conformance_test = () => { throw new Error("it must not run"); };
"""
"""The file that the tests import; `webnn_conformance_test` is replaced before they run."""

TEST_FILE: Final = """
const double = (name, data, type, outputs) => ({
  name,
  graph: {
    inputs: {x: {data, descriptor: {shape: [2], dataType: type}, constant: true}},
    operators: [{name: "add", arguments: [{a: "x"}, {b: "x"}], outputs: "y"}],
    expectedOutputs: {y: {data: outputs, descriptor: {shape: [2], dataType: type}}},
  },
});
const twice = double("two operators", [1, -3], "float32", [2, 0]);
twice.graph.operators[0].outputs = "z";
twice.graph.operators.push({name: "relu", arguments: [{input: "z"}], outputs: "y"});
const unknown = double("unknown", [1, 2], "float32", [2, 4]);
unknown.graph.operators[0].name = "subtractTwice";
const inverse = double("right of zeros with a sign", [0, -0], "float32", [Infinity, -Infinity]);
inverse.graph.operators = [{name: "reciprocal", arguments: [{input: "x"}], outputs: "y"}];
const tests = [
  inverse,
  double("right", [1, -0.25], "float32", [2, -0.5]),
  double("right of large integers", [2n ** 61n + 1n, -1n], "int64", [2n ** 62n + 2n, -2n]),
  double("right of infinity", [Infinity, -0], "float32", [Infinity, -0]),
  double("rounded", [1, 2], "float32", [2, 4.0000004768]),
  double("wrong", [1, 2], "float32", [2, 5]),
  twice,
  unknown,
];
tests.forEach((test) => webnn_conformance_test(null, getPrecisionTolerance, test));
"""
"""Tests in WebNN's form. In `rounded`, 4.0000004768 is one ULP above 4 in FLOAT32."""


@pytest.mark.webnn
def test_webnn_tests_are_read_from_a_checkout_and_judged(tmp_path: Path) -> None:
    for file, text in (("resources/utils.js", UTILITIES), ("conformance_tests/add", TEST_FILE)):
        path = tmp_path / "webnn" / (file if file.endswith(".js") else f"{file}.https.any.js")
        path.parent.mkdir(parents=True)
        path.write_text(text)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "none"]):
        subprocess.run([*git, *command], check=True)
    actual = results(tmp_path)
    assert actual["passed"] == {"add": 3, "reciprocal": 1}
    assert actual["passed_graphs"] == 1
    assert list(actual["failed"]) == ["add: wrong"]
    assert "5 is not 4" in actual["failed"]["add: wrong"]
    [(name, reason)] = actual["explained"].items()
    assert name == "add: rounded"
    assert "within the errors that it accepts" in reason
    assert actual["operators_without_cases"] == {"subtractTwice": 1}


def wpt_test(operation: str, arguments: Mapping[str, Any], **tensors: Tensor) -> WptTest:
    """Return a test with each tensor as the argument of its name, and `y` as the output."""
    outputs = [each for name, each in tensors.items() if name == "y"]
    inputs = {name: each for name, each in tensors.items() if name != "y"}
    named = {**arguments, **{name: name for name in inputs}}
    return WptTest("here", "it", operation, named, inputs, outputs, Tolerance("ULP", 0))


def ones(*sizes: int) -> Tensor:
    return Tensor("float32", sizes, "1")


def numbers(*sizes: int) -> Tensor:
    """Return a FLOAT32 tensor with the elements 0, 1, 2 and so on."""
    return Tensor("float32", sizes, [str(n) for n in range(int(np.prod(sizes)))])


def test_gates_of_a_recurrent_layer_are_put_in_directmls_order() -> None:
    case = as_case(
        wpt_test(
            "gruCell",
            {"layout": "rzn", "hiddenSize": 1},
            input=ones(1, 2),
            weight=numbers(3, 2),
            recurrentWeight=numbers(3, 1),
            hiddenState=ones(1, 1),
            y=ones(1, 1),
        )
    )
    # WebNN's gates are r, z and n here, and DirectML's z, r and n.
    inputs = case.inputs()
    np.testing.assert_array_equal(inputs["WeightTensor"], [[[[2, 3], [0, 1], [4, 5]]]])
    np.testing.assert_array_equal(inputs["RecurrenceTensor"], [[[[1], [0], [2]]]])
    assert case.desc["LinearBeforeReset"] is True


def test_scale_is_transposed_from_the_order_of_axes() -> None:
    axes = {"axes": [2, 1]}
    tensors = {"input": ones(2, 3, 4), "scale": numbers(4, 3), "y": ones(2, 3, 4)}
    scale = as_case(wpt_test("layerNormalization", axes, **tensors)).inputs()["ScaleTensor"]
    np.testing.assert_array_equal(scale, [[[0, 3, 6, 9], [1, 4, 7, 10], [2, 5, 8, 11]]])


def test_output_sizes_that_are_rounded_up_become_end_padding() -> None:
    # Three windows of width 3 with a stride of 2 need 7 columns; the input has 6.
    options = {"windowDimensions": [3, 3], "strides": [2, 2], "roundingType": "ceil"}
    case = as_case(wpt_test("maxPool2d", options, input=ones(1, 1, 5, 6), y=ones(1, 1, 2, 3)))
    assert (case.desc["StartPadding"], case.desc["EndPadding"]) == ((0, 0), (0, 1))


def test_sizes_of_an_output_become_output_padding() -> None:
    # Without output padding, the output has 9x7 elements.
    options = {"strides": [3, 2], "outputSizes": [10, 8], "inputLayout": "nhwc"}
    tensors = {"input": ones(1, 3, 3, 1), "filter": ones(1, 2, 3, 3), "y": ones(1, 10, 8, 2)}
    case = as_case(wpt_test("convTranspose2d", options, **tensors))
    assert case.desc["OutputPadding"] == (1, 1)
    assert case.desc["OutputTensor"].Sizes == (1, 2, 10, 8)


@pytest.mark.parametrize(
    ("units", "accepted"), [(0, False), (1, False), (2, True)], ids=["none", "one", "two"]
)
def test_numbers_next_to_zero_are_two_ulps_apart(units: float, accepted: bool) -> None:
    least = np.finfo(np.float16).smallest_subnormal
    tolerance = Tolerance("ULP", units)
    actual, expected = np.array([least, -0.0, np.nan]), np.array([-least, 0.0, np.nan])
    assert tolerance.accepts(actual.astype("f2"), expected.astype("f2")) is accepted


def test_a_tolerance_accepts_nan_only_for_nan() -> None:
    nan, one = np.array([np.nan], np.float32), np.array([1], np.float32)
    for tolerance in (Tolerance("ULP", 1e6), Tolerance("ATOL", 1e6)):
        assert tolerance.accepts(nan, nan)
        assert not tolerance.accepts(nan, one)
        assert not tolerance.accepts(one, nan)


def test_one_given_element_fills_the_whole_tensor() -> None:
    np.testing.assert_array_equal(Tensor("int64", (2, 1), "-5").array(), [[-5], [-5]])


def test_an_element_keeps_the_sign_of_zero() -> None:
    assert np.signbit(Tensor("float32", (), ["-0"]).array())
