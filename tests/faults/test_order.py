"""A known fault is waived: DirectML 1.9 reads a normalization before it is written.

The tested code is in `dmlconf/faults/graphs/order.py` and `schemas/known-faults.yaml`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.protocol import Environment, Fault, FaultKind, Outcome, Outputs
from dmlconf.backends.registry import parse
from dmlconf.engine.session import reference
from dmlconf.excuses.known_fault_file import known_faults
from dmlconf.judging.judge import judge
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import Status
from tests.graphs.suites import graph_case

NAME = "normalization-read-before-it-is-written"
NEGATE = "{operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: %s, OutputTensor: {}}}"
ADD = "{operator: ELEMENT_WISE_ADD1, desc: {ATensor: x, BTensor: x, OutputTensor: {}%s}}"
UNPOOLING = (
    "{operator: MAX_UNPOOLING, desc: {InputTensor: %s, IndicesTensor: i, "
    "OutputTensor: {Sizes: [1, 1, 2, 2], DataType: FLOAT32}}}"
)
FUSED = ", FusedActivation: {operator: ACTIVATION_LINEAR, Alpha: 0.5, Beta: 0}"
FUSED_RELU = ", FusedActivation: {operator: ACTIVATION_RELU}"
GRAPH = """
inputs:
  x: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [1, 3, 1, 3]}
  i: {Sizes: [1, 1, 2, 2], DataType: UINT32, values: [0, 1, 2, 3]}
nodes:
  y: %s
  z:
    operator: MEAN_VARIANCE_NORMALIZATION1
    desc: {InputTensor: x, OutputTensor: {}, Axes: [2, 3], NormalizeVariance: true, Epsilon: 0}
  w: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: z, OutputTensor: {}}}
  v: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: x, OutputTensor: {}}}
outputs: {y: y, z: z, w: w, v: v}
"""
BESIDE = GRAPH % (UNPOOLING % "x")


def floats(*values: float) -> Array:
    return np.array(values, np.float32).reshape(1, 1, 2, 2)


RIGHT = {
    "y": floats(1, 3, 1, 3),
    "z": floats(-1, 1, -1, 1),
    "w": floats(1, -1, 1, -1),
    "v": floats(-1, -3, -1, -3),
}
TOO_EARLY = floats(*[4.316e8] * 4)


def waiving_fault(folder: Path, text: str, outcome: Outcome, version: str = "1.9.1") -> str:
    """Return the name of the fault that waives the graph; "" if it fails."""
    faults = known_faults(Environment("directml", version, "an adapter", "1.0"))
    case = graph_case(folder, text)
    verdict = judge(case, outcome, reference("numpy", parse("directml")))
    verdict = faults.waive(case, outcome, verdict)
    assert verdict.reason is not None
    return verdict.reason.message.partition(",")[0] if verdict.status is Status.WAIVED else ""


def test_node_that_reads_a_normalization_too_early_is_waived(tmp_path: Path) -> None:
    wrong = Outputs({**RIGHT, "w": TOO_EARLY})
    for version in ("1.9.0", "1.9.1"):
        assert waiving_fault(tmp_path, BESIDE, wrong, version) == NAME
    for version in ("1.8.2", "1.10.1", "1.15.4"):
        assert waiving_fault(tmp_path, BESIDE, wrong, version) == ""


@pytest.mark.parametrize("kind", [FaultKind.NOT_WRITTEN, FaultKind.NOT_DETERMINISTIC])
def test_bytes_from_before_may_vary_or_count_as_unwritten(tmp_path: Path, kind: FaultKind) -> None:
    for output, name in (("w", NAME), ("v", "")):
        fault = Fault(kind, "it is not the same", output, np.arange(4))
        wrong = Outputs({**RIGHT, "w": TOO_EARLY}, faults=(fault,))
        assert waiving_fault(tmp_path, BESIDE, wrong) == name


@pytest.mark.parametrize("output", ["y", "v", "z"])
def test_wrong_outputs_that_no_node_made_of_the_normalization_are_not_waived(
    tmp_path: Path, output: str
) -> None:
    wrong = Outputs({**RIGHT, "w": TOO_EARLY, output: TOO_EARLY})
    assert waiving_fault(tmp_path, BESIDE, wrong) == ""


@pytest.mark.parametrize(
    ("node", "right", "name"),
    [
        (NEGATE % "x", RIGHT["v"], ""),
        (UNPOOLING % "z", RIGHT["z"], ""),
        (ADD % "", floats(2, 6, 2, 6), ""),
        (ADD % FUSED, RIGHT["y"], NAME),
        (ADD % FUSED_RELU, floats(2, 6, 2, 6), ""),
    ],
    ids=["one kernel", "behind the normalization", "no activation", "activation", "relu"],
)
def test_other_nodes_beside_the_normalization(
    tmp_path: Path, node: str, right: Array, name: str
) -> None:
    wrong = Outputs({**RIGHT, "y": right, "w": TOO_EARLY})
    assert waiving_fault(tmp_path, GRAPH % node, wrong) == name


GRAPH_OF_SOFTMAX = f"""
inputs:
  x: {{Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [1, 3, 1, 3]}}
  f: {{Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [1, 2, 3, 4]}}
nodes:
  y: %s
  z: %s
  w: {NEGATE % "z"}
outputs: {{y: y, z: z, w: w}}
"""
CONVOLUTION = (
    "{operator: CONVOLUTION, desc: {InputTensor: x, FilterTensor: f, OutputTensor: {Sizes: %s, "
    "DataType: FLOAT32}, Mode: CROSS_CORRELATION, Direction: %s, Strides: %s, Dilations: [1, 1], "
    "StartPadding: [0, 0], EndPadding: [0, 0], OutputPadding: %s, GroupCount: 1}}"
)


@pytest.mark.parametrize("step", ["ACTIVATION_SOFTMAX", "ACTIVATION_LOG_SOFTMAX"])
@pytest.mark.parametrize(
    ("sizes", "direction", "strides", "padding", "name"),
    [
        ("[1, 1, 2, 1]", "FORWARD", "[1, 1]", "[1, 0]", NAME),
        ("[1, 1, 4, 4]", "BACKWARD", "[2, 2]", "[0, 0]", NAME),
        ("[1, 1, 4, 3]", "BACKWARD", "[2, 1]", "[0, 0]", ""),
        ("[1, 1, 1, 1]", "FORWARD", "[1, 1]", "[0, 0]", ""),
    ],
)
def test_softmax_beside_a_convolution(
    tmp_path: Path, step: str, sizes: str, direction: str, strides: str, padding: str, name: str
) -> None:
    softmax = f"{{operator: {step}, desc: {{InputTensor: x, OutputTensor: {{}}}}}}"
    text = GRAPH_OF_SOFTMAX % (CONVOLUTION % (sizes, direction, strides, padding), softmax)
    right = evaluate(graph_case(tmp_path, text))
    for output, expected in (("w", name), ("z", "")):
        wrong = Outputs({**right, output: right[output] + 7})
        assert waiving_fault(tmp_path, text, wrong) == expected


RECURRENT = f"""
inputs:
  x: {{Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [1, 3, 1, 3]}}
  i: {{Sizes: [1, 1, 2, 2], DataType: UINT32, values: [0, 1, 2, 3]}}
  a: {{Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [0, 0]}}
  r: {{Sizes: [1, 1, 1, 1], DataType: FLOAT32, values: [0]}}
nodes:
  y: {UNPOOLING % "x"}
  z:
    operator: RNN
    desc:
      InputTensor: x
      WeightTensor: a
      RecurrenceTensor: r
      OutputSequenceTensor: {{Sizes: [1, 1, 2, 1]}}
      OutputSingleTensor: {{Sizes: [1, 1, 2, 1]}}
      ActivationDescs: [{{operator: ACTIVATION_TANH}}]
      Direction: FORWARD
  w: {NEGATE % "z"}
outputs: {{y: y, z: z.OutputSingleTensor, w: w}}
"""


@pytest.mark.parametrize(("output", "name"), [("z", NAME), ("w", NAME), ("y", "")])
def test_recurrent_layer_may_be_wrong_itself(tmp_path: Path, output: str, name: str) -> None:
    """DirectML 1.9.1 left OutputSingleTensor of an RNN unwritten in such a graph."""
    zeros = np.zeros((1, 1, 2, 1), np.float32)
    arrays = {"y": RIGHT["y"], "z": zeros, "w": -zeros}
    wrong = Outputs({**arrays, output: arrays[output] + 7})
    assert waiving_fault(tmp_path, RECURRENT, wrong) == name


def test_normalization_that_feeds_no_node_is_not_waived(tmp_path: Path) -> None:
    graph = BESIDE.replace("InputTensor: z", "InputTensor: x")
    wrong = Outputs({**RIGHT, "w": RIGHT["v"], "z": TOO_EARLY})
    assert waiving_fault(tmp_path, graph, wrong) == ""
