"""Coverage names the operators and pairs of nodes that captured cases use and others do not.

The tested code is in `dmlconf/coverage/captured.py` and `dmlconf/coverage/graphs.py`.
"""

from __future__ import annotations

from pathlib import Path

from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.selecting.selection import CAPTURED_NOTE
from dmlconf.coverage.captured import CapturedUses, Use
from dmlconf.coverage.graphs import graph_coverage
from tests.graphs.suites import TWO_NODES, graph_file

CAPTURED = f"note: {CAPTURED_NOTE.format('one, two')}\ntags: [captured]\n"
MODELS = frozenset({"one", "two"})

RELU = f"""
operator: ACTIVATION_RELU
cases:
  - name: captured
    {CAPTURED.replace(chr(10), chr(10) + "    ")}
    desc:
      InputTensor: {{Sizes: [2], DataType: FLOAT32, fill: sequence}}
      OutputTensor: {{Sizes: [2], DataType: FLOAT32}}
  - name: refused
    desc:
      InputTensor: {{Sizes: [2], DataType: FLOAT32}}
      OutputTensor: {{Sizes: [3], DataType: FLOAT32}}
    expect: {{rejected: E_INVALIDARG}}
"""


def test_captured_graphs_without_a_chosen_operator_are_not_counted(tmp_path: Path) -> None:
    other = TWO_NODES.replace("ACTIVATION_RELU", "ACTIVATION_TANH")
    plan = list(load_suite([graph_file(tmp_path, CAPTURED + TWO_NODES, other)]).plan())
    relu = CapturedUses().coverage(plan, graph_coverage(plan, ["ACTIVATION_RELU"]))
    pair = "neighbours", "ELEMENT_WISE_ADD feeds ACTIVATION_RELU"
    assert (relu.cases, relu.models, relu.uses) == (1, MODELS, {pair: Use(MODELS, others=0)})
    assert relu.only_captured() == [pair]
    assert CapturedUses().coverage(plan, graph_coverage(plan, ["ACTIVATION_TANH"])).cases == 0


def test_a_case_that_must_be_rejected_is_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "relu.yaml"
    path.write_text(RELU, encoding="utf-8")
    plan = list(load_suite([path]).plan())
    uses = CapturedUses()
    assert len(list(uses.counting(map(valid_case, plan)))) == 2
    coverage = uses.coverage(plan, graph_coverage(plan, []))
    assert coverage.cases == 1
    assert ("operator", "ACTIVATION_RELU") in coverage.only_captured()
