"""A captured constant keeps every bit in the journal, whether as a fill or as a list of numbers.

The tested code is in `dmlconf/capture/journal_lines.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dmlconf.capture.graph_decoding import DecodedGraph
from dmlconf.capture.journal_lines import graph_line
from dmlconf.cases.loading.loader import load_suite, valid_case

GRAPH = """
graph: adds a constant
cases:
- name: case
  inputs: {X: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [1, 2]}}
  constants: {c: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: VALUES}}
  nodes:
    sum:
      operator: ELEMENT_WISE_ADD
      desc: {ATensor: X, BTensor: c, OutputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32}}
  outputs: {Y: sum}
"""
"""A graph with a constant; VALUES stands for its elements."""


@pytest.mark.parametrize(
    ("values", "written"),
    [
        ("[0.0, 0.0]", {"fill": {"constant": {"value": 0.0}}}),
        ("[-0.0, -0.0]", {"fill": {"constant": {"value": -0.0}}}),
        ("[0.0, -0.0]", {"values": [0.0, -0.0]}),
        ("[1.0, 2.0]", {"values": [1.0, 2.0]}),
    ],
)
def test_only_equal_bits_make_a_constant_a_fill(
    tmp_path: Path, values: str, written: dict[str, Any]
) -> None:
    path = tmp_path / "case.yaml"
    path.write_text(GRAPH.replace("VALUES", values), "utf-8")
    [planned] = load_suite([path]).plan()
    graph = valid_case(planned).graph
    decoded = DecodedGraph(graph, names={}, inputs=(0,), unused=0)
    _, line = graph_line(decoded, flags=0)
    entry = line["graph"]["constants"]["c"]
    data = {key: item for key, item in entry.items() if key in ("values", "fill")}
    assert str(data) == str(written)  # -0.0 == 0.0, but their texts differ.
