"""A wrong result is waived if the specification's own formula gives it, and no other is.

A finding explains a wrong result of ONNX Runtime only if the finding's formula gives it.

The tested code is in `specifications.py`, `specified_activations.py`, `onnxruntime.py` and
`onnxruntime_quantization.py` in `dmlconf/faults/runtimes/`, in
`dmlconf/excuses/computed_elements.py`, `schemas/targets/` and `schemas/findings/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Environment, Outputs
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.excuses.deviations import read_deviations
from dmlconf.excuses.findings import findings_of
from dmlconf.faults.runtimes.onnxruntime_quantization import zero_point_before_rounding
from dmlconf.judging.conclusion import Conclusion
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict

NAN: Final = np.nan
INF: Final = np.inf
CPU: Final = Environment(
    "onnxruntime", "1.32.0", details={"target": "onnx", "provider": "CPUExecutionProvider"}
)


def described(directory: Path, operator: str, desc: str) -> Case:
    """Return a case of an operator; `desc` is YAML without the outer braces."""
    file = directory / f"{operator.lower()}.yaml"
    file.write_text(
        f"operator: {operator}\ncases:\n  - {{name: one, desc: {{{desc}}}}}\n", encoding="utf-8"
    )
    [planned] = load_suite([file]).plan()
    return valid_case(planned).with_inputs()


def verdict(of: Case, values: list[float], target: str = "onnx") -> Verdict:
    """Return the verdict on these elements of an output; failures of `onnx` may have findings."""
    [(name, tensor)] = of.outputs().items()
    with np.errstate(invalid="ignore"):
        output = np.array(values, np.float64).astype(tensor.DataType.dtype).reshape(tensor.Sizes)
    findings = findings_of(CPU) if target == "onnx" else findings_of({"backend": "numpy"})
    conclusion = Conclusion(run_case, deviations=read_deviations(target), findings=findings)
    outcome = Outputs({name: output})
    return conclusion.excused(of, outcome, conclusion.judge(of, outcome))


def tensor(name: str, values: str, data_type: str = "FLOAT32", sizes: str = "") -> str:
    """Return an input in YAML; without `sizes` it has one dimension."""
    sizes = sizes or f"[{values.count(',') + 1}]"
    return f"{name}: {{Sizes: {sizes}, DataType: {data_type}, values: [{values}]}}"


def output(count: int, data_type: str = "FLOAT32") -> str:
    return f"OutputTensor: {{Sizes: [{count}], DataType: {data_type}}}"


ADDED: Final = (
    f"{tensor('ATensor', '2, -1', sizes='[1, 1, 1, 2]')}, "
    f"{tensor('BTensor', '1, -2', sizes='[1, 1, 1, 2]')}, "
    "OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}, "
)
"""The desc of the sums 3 and -3, without its activation."""

LAYER: Final = (
    f"{tensor('InputTensor', '1, 1', sizes='[1, 2, 1, 1]')}, "
    f"{tensor('WeightTensor', '90', sizes='[1, 1, 1, 1]')}, "
    f"{tensor('RecurrenceTensor', '1', sizes='[1, 1, 1, 1]')}, "
    "OutputSequenceTensor: {Sizes: [2, 1, 1, 1], DataType: FLOAT32}, "
    "ActivationDescs: [{operator: ACTIVATION_SOFTPLUS, Steepness: 1}], Direction: FORWARD"
)
"""The desc of two steps of an RNN; e^90 overflows FLOAT32."""

# A target, a deviation, an operator, its desc, what the target gives, and another wrong result.
WRITTEN: Final = [
    (
        "onnx",
        "onnx-celu-of-an-alpha-of-0",
        "ACTIVATION_CELU",
        f"{tensor('InputTensor', '2, 0, -1')}, {output(3)}, Alpha: 0",
        [NAN, NAN, 0],
        [2, 0, NAN],
    ),
    (
        "onnx",
        "onnx-celu-of-an-alpha-of-0",
        "ELEMENT_WISE_ADD1",
        ADDED + "FusedActivation: {operator: ACTIVATION_CELU, Alpha: 0}",
        [NAN, 0],
        [3, NAN],
    ),
    (
        "onnx",
        "onnx-shrink-of-negative-thresholds",
        "ELEMENT_WISE_ADD1",
        ADDED + "FusedActivation: {operator: ACTIVATION_SHRINK, Bias: 7, Threshold: -4}",
        [10, 4],
        [10, -11],
    ),
    (
        "onnx",
        "onnx-selu-of-infinite-attributes",
        "ELEMENT_WISE_ADD1",
        ADDED + "FusedActivation: {operator: ACTIVATION_SCALED_ELU, Alpha: .inf, Gamma: 1}",
        [3, NAN],
        [NAN, -INF],
    ),
    (
        "onnx",
        "onnx-elu-of-an-infinite-alpha",
        "ACTIVATION_ELU",
        f"{tensor('InputTensor', '-1.0e-40, -1, 2')}, {output(3)}, Alpha: .inf",
        [NAN, -INF, 2],
        [-INF, NAN, 2],
    ),
    (
        "onnx",
        "onnx-nan-below-a-threshold",
        "ACTIVATION_THRESHOLDED_RELU",
        f"{tensor('InputTensor', '5, -1')}, {output(2)}, Alpha: .nan",
        [0, 0],
        [0, -2],
    ),
    (
        "onnx",
        "onnx-clip-of-crossed-bounds",
        "GEMM",
        f"{tensor('ATensor', '2', sizes='[1, 1, 1, 1]')}, "
        f"{tensor('BTensor', '1, -1', sizes='[1, 1, 1, 2]')}, "
        "OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}, "
        "TransA: NONE, TransB: NONE, Alpha: 1, Beta: 0, "
        "FusedActivation: {operator: ELEMENT_WISE_CLIP, Min: 3, Max: 0.5}",
        [0.5, 0.5],
        [0.5, -3],
    ),
    (
        "onnx",
        "onnx-nan-before-clamping",
        "GEMM",
        f"{tensor('ATensor', '.inf, 1', sizes='[1, 1, 2, 1]')}, "
        f"{tensor('BTensor', '1', sizes='[1, 1, 1, 1]')}, "
        "OutputTensor: {Sizes: [1, 1, 2, 1], DataType: FLOAT32}, "
        "TransA: NONE, TransB: NONE, Alpha: 1, Beta: 0, "
        "FusedActivation: {operator: ACTIVATION_HARD_SIGMOID, Alpha: 0, Beta: 0.5}",
        [NAN, 0.5],
        [0, NAN],
    ),
    (
        "onnx",
        "onnx-softplus-of-infinite-powers",
        "RNN",
        LAYER,
        [INF, INF],
        [INF, 70],
    ),
    (
        "webnn",
        "webnn-quantization-of-nan",
        "ELEMENT_WISE_QUANTIZE_LINEAR",
        f"{tensor('InputTensor', '0, 3')}, {tensor('ScaleTensor', '1.0e-40, 1')}, "
        f"{output(2, 'UINT8')}",
        [255, 3],
        [0, 255],
    ),
    (
        "onnx",
        "onnx-scaled-integers-beyond-their-type",
        "ELEMENT_WISE_IDENTITY",
        f"{tensor('InputTensor', '4294967295, 5', 'UINT32')}, {output(2, 'UINT32')}, "
        "ScaleBias: {Scale: 2, Bias: 3}",
        [1, 13],
        [2, 13],
    ),
    (
        "webnn",
        "webnn-scaled-integers-beyond-their-type",
        "ELEMENT_WISE_THRESHOLD",
        f"{tensor('InputTensor', '-2147483648, 5', 'INT32')}, {output(2, 'INT32')}, "
        "ScaleBias: {Scale: -1, Bias: 1}, Min: -1",
        [-1, -1],
        [0, -1],
    ),
    (
        "onnx",
        "onnx-power-of-nan",
        "ELEMENT_WISE_CONSTANT_POW",
        f"{tensor('InputTensor', '-3.0e+38, -4')}, {output(2)}, "
        "ScaleBias: {Scale: 2, Bias: 0}, Exponent: 0.5",
        [INF, NAN],
        [INF, INF],
    ),
    (
        "webnn",
        "webnn-prelu-as-written",
        "ACTIVATION_PARAMETERIZED_RELU",
        f"{tensor('InputTensor', '3, 3, -2')}, {tensor('SlopeTensor', '.inf, 2, 0.5')}, "
        f"{output(3)}",
        [NAN, 3, -1],
        [3, NAN, -1],
    ),
    (
        "webnn",
        "webnn-nan-before-clamping",
        "ACTIVATION_HARD_SIGMOID",
        f"{tensor('InputTensor', '.inf, 1')}, {output(2)}, Alpha: 0, Beta: 0.5",
        [NAN, 0.5],
        [0, NAN],
    ),
]


@pytest.mark.parametrize(("target", "name", "operator", "desc", "given", "other"), WRITTEN)
def test_only_the_result_of_the_formula_is_waived(
    tmp_path: Path,
    target: str,
    name: str,
    operator: str,
    desc: str,
    given: list[float],
    other: list[float],
) -> None:
    of = described(tmp_path, operator, desc)
    waived = verdict(of, given, target)
    assert waived.status is Status.WAIVED
    assert waived.reason is not None
    assert waived.reason.message.startswith(f"{name}: ")
    assert verdict(of, other, target).status is Status.FAILED


def test_copy_of_an_input_is_not_waived(
    tmp_path: Path,
) -> None:
    """ONNX permits 0.003 as the hyperbolic tangent of 0.003."""
    numbers = [0.003 + 1e-5 * place for place in range(16)]
    desc = f"{tensor('InputTensor', ', '.join(map(str, numbers)))}, {output(16)}"
    of = described(tmp_path, "ACTIVATION_TANH", desc)
    assert verdict(of, [1.0002 * number for number in numbers]).status is Status.WAIVED
    found = verdict(of, numbers)
    assert found.status is Status.FAILED
    assert found.reason is not None
    assert found.reason.kind is ReasonKind.INPUT_COPIED


QUANTIZED: Final = (
    f"{tensor('ATensor', '2, 3', 'UINT8')}, {tensor('AScaleTensor', '1.0e+9')}, "
    f"{tensor('BTensor', '0, 0', 'UINT8')}, {tensor('BScaleTensor', '1')}, "
    f"{tensor('OutputScaleTensor', '1')}, {output(2, 'UINT8')}"
)
CANCELLED: Final = (
    f"{tensor('ATensor', '5', 'INT8')}, {tensor('AScaleTensor', '0.36674663')}, "
    f"{tensor('BTensor', '3', 'INT8')}, {tensor('BScaleTensor', '-3.167943e+20')}, "
    f"{tensor('BZeroPointTensor', '3', 'INT8')}, {tensor('OutputScaleTensor', '16777218')}, "
    f"{tensor('OutputZeroPointTensor', '3', 'INT8')}, {output(1, 'INT8')}"
)
CHANNELS: Final = (
    "InputTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32, values: [5000, 2]}, "
    "OutputTensor: {Sizes: [1, 2, 1, 1], DataType: FLOAT32}, "
    "CrossChannel: true, LocalSize: 1, Alpha: 1, Beta: 1, Bias: 1"
)
MEANS: Final = (
    f"{tensor('InputTensor', '-10, 10, -7, 7', sizes='[1, 4, 1, 1]')}, "
    "OutputTensor: {Sizes: [1, 4, 1, 1], DataType: FLOAT32}, CrossChannel: true, "
    "NormalizeVariance: false, Epsilon: 0.5, FusedActivation: {operator: ACTIVATION_SIGMOID}"
)

# A finding, an operator, its desc, what ONNX Runtime 1.32.0 gives, and another wrong result.
FOUND: Final = [
    (
        "infinite-scales-of-quantized-sums",
        "ELEMENT_WISE_QUANTIZED_LINEAR_ADD",
        QUANTIZED,
        [255, 0],
        [250, 0],
    ),
    (
        "infinite-scales-of-quantized-sums",
        "ELEMENT_WISE_QUANTIZED_LINEAR_ADD",
        CANCELLED,
        [-128],
        [127],
    ),
    (
        "running-sums-of-squares",
        "LOCAL_RESPONSE_NORMALIZATION",
        CHANNELS,
        [2e-4, 0.5],
        [2e-4, 0.45],
    ),
    (
        "sigmoid-far-below-zero",
        "MEAN_VARIANCE_NORMALIZATION",
        MEANS,
        [4.5397868e-5 + 2.3e-7, 0.9999546, 9.1105117e-4, 0.999089],
        [4.5397868e-5 + 6e-7, 0.9999546, 9.1105117e-4, 0.999089],
    ),
    (
        "selu-by-the-product-of-its-attributes",
        "ACTIVATION_SCALED_ELU",
        f"{tensor('InputTensor', '-0.1, 0, 2')}, {output(3)}, Alpha: 3.4e+38, Gamma: 1.5",
        [-INF, NAN, 3],
        [-INF, NAN, 4],
    ),
    (
        "selu-by-the-product-of-its-attributes",
        "ELEMENT_WISE_ADD1",
        ADDED + "FusedActivation: {operator: ACTIVATION_SCALED_ELU, Alpha: 3.4e+38, Gamma: 1.02}",
        [3.06, -INF],
        [3.06, NAN],
    ),
]


@pytest.mark.parametrize(("name", "operator", "desc", "given", "other"), FOUND)
def test_finding_explains_only_what_onnx_runtime_gives(
    tmp_path: Path,
    name: str,
    operator: str,
    desc: str,
    given: list[float],
    other: list[float],
) -> None:
    of = described(tmp_path, operator, desc)
    for values, named in ((given, True), (other, False)):
        found = verdict(of, values)
        assert found.status is Status.FAILED
        assert found.reason is not None
        assert found.reason.message.startswith(f"known finding {name} ") is named


def test_sum_with_zero_point_may_be_in_float32(
    tmp_path: Path,
) -> None:
    desc = (
        f"{tensor('InputTensor', '0.50000006')}, {tensor('ScaleTensor', '1')}, "
        f"{tensor('ZeroPointTensor', '12', 'UINT8')}, {output(1, 'UINT8')}"
    )
    first = zero_point_before_rounding(described(tmp_path, "ELEMENT_WISE_QUANTIZE_LINEAR", desc))
    assert first is not None
    assert first.others is not None
    # 12.50000006 rounds to 13; FLOAT32 makes it 12.5, which rounds to the even number 12.
    computed = [each.outputs["OutputTensor"].tolist() for each in (first, *first.others())]
    assert computed == [[13], [12]]
