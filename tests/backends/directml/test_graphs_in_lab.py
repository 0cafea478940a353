"""Graphs on Microsoft's DirectML give right outputs; a refusal names its stage.

The graphs run in the Wine lab; build it first: python3 lab/lab.py build.

The tested code is in `dmlconf/backends/directml/dispatch/graph.py`,
`dmlconf/backends/directml/dispatch/executor.py` and
`dmlconf/backends/directml/dispatch/outcomes.py`.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.backends.directml.lab_script import printed_in_lab

pytestmark = pytest.mark.lab


CASES: Final = """
graph: small graphs
cases:
  - name: fused
    inputs:
      a: {Sizes: [3], DataType: FLOAT32, values: [1, -5, 3]}
      b: {Sizes: [3], DataType: FLOAT32, values: [1, 2, 3]}
    nodes: &nodes
      sum: {operator: ELEMENT_WISE_ADD, desc: {ATensor: a, BTensor: b, OutputTensor: {}}}
      relu: {operator: ACTIVATION_RELU, desc: {InputTensor: sum, OutputTensor: {}}}
    outputs: {y: relu}
  - name: exported
    inputs: &inputs
      unused: {Sizes: [5], DataType: FLOAT32, values: [1, 2, 3, 4, 5]}
      a: {Sizes: [3], DataType: FLOAT32, values: [1, -5, 3]}
      b: {Sizes: [3], DataType: FLOAT32, Flags: OWNED_BY_DML, values: [1, 2, 3]}
    nodes: *nodes
    outputs: {between: sum, y: relu}
  - name: idle-node
    inputs: *inputs
    nodes:
      sum: {operator: ELEMENT_WISE_ADD, desc: {ATensor: a, BTensor: b, OutputTensor: {}}}
      relu: {operator: ACTIVATION_RELU, desc: {InputTensor: sum, OutputTensor: {}}}
      idle: {operator: ACTIVATION_TANH, desc: {InputTensor: sum, OutputTensor: {}}}
    outputs: {y: relu}
    expect: {rejected: E_INVALIDARG}
  - name: refused-node
    inputs: *inputs
    nodes:
      sum: {operator: ELEMENT_WISE_ADD, desc: {ATensor: a, BTensor: b, OutputTensor: {}}}
      relu: {operator: ACTIVATION_RELU, desc: {InputTensor: sum, OutputTensor: {Sizes: [5]}}}
    outputs: {y: relu}
    expect: {rejected: E_INVALIDARG}
  - name: constant
    inputs:
      x: {Sizes: [3], DataType: FLOAT32, values: [1, -5, 3]}
    constants:
      factor: {Sizes: [1], DataType: FLOAT32, values: [-2]}
    nodes:
      product:
        operator: ELEMENT_WISE_MULTIPLY
        desc: {ATensor: x, BTensor: {from: factor, Sizes: [3], Strides: [0]}, OutputTensor: {}}
    outputs: {y: product}
"""

SCRIPT: Final = """
import json
from pathlib import Path
from dmlconf.backends.directml.backend import create
from dmlconf.backends.protocol import Outputs
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite

def as_json(outcome):
    if isinstance(outcome, Outputs):
        arrays = {name: array.tolist() for name, array in outcome.arrays.items()}
        return [arrays, [fault.message for fault in outcome.faults], len(outcome.dispatch_seconds)]
    return [outcome.hresult, outcome.stage, outcome.node]

backend = create("")
planned = load_suite([Path("graphs.yaml")], every_case=True).plan()
cases = [build(each) for each in planned]
together = list(map(as_json, backend.run(cases)))
singly = [as_json(outcome) for case in cases for outcome in backend.run([case])]
print(json.dumps({"together": together, "singly": singly}))
backend.close()
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The outcomes of the graphs on DirectML, in one batch (`together`) and one by one (`singly`).

    Each is [outputs, messages of faults, number of dispatches] or [HRESULT, stage, node].
    """
    return printed_in_lab(tmp_path_factory.mktemp("lab"), SCRIPT, CASES, "graphs.yaml")


def test_graph_gives_its_output_without_a_fault(outcomes: Any) -> None:
    assert outcomes["together"][0] == [{"y": [2, 0, 6]}, [], 2]


def test_graph_with_owned_unused_and_exported_tensors_gives_outputs(outcomes: Any) -> None:
    assert outcomes["together"][1] == [{"between": [2, -3, 6], "y": [2, 0, 6]}, [], 2]


def test_refusal_names_its_stage_and_the_refused_node(
    outcomes: Any,
) -> None:
    assert outcomes["together"][2:4] == [
        ["E_INVALIDARG", "CompileGraph", ""],
        ["E_INVALIDARG", "CreateOperator", "relu"],
    ]


def test_constant_node_gives_its_value_to_a_node(outcomes: Any) -> None:
    assert outcomes["together"][4] == [{"y": [-2, 10, -6]}, [], 2]


def test_graph_outcomes_are_the_same_in_a_batch(outcomes: Any) -> None:
    assert outcomes["singly"] == outcomes["together"]
