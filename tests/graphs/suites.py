"""Graphs as YAML, and functions that make cases of them."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent
from typing import Final

from dmlconf.cases.building.build import build
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase

TWO_NODES: Final = """
inputs: {x: {Sizes: [1, 1, 1, 3], DataType: FLOAT32, values: [1, -2, 3]}}
nodes:
  double: {operator: ELEMENT_WISE_ADD, desc: {ATensor: x, BTensor: x, OutputTensor: {}}}
  relu: {operator: ACTIVATION_RELU, desc: {InputTensor: double, OutputTensor: {}}}
outputs: {y: relu}
"""
"""The relu of 2 * x, which is [2, 0, 6]."""

PRODUCT: Final = """
inputs:
  a: {Sizes: [1, 1, 9, 40], DataType: FLOAT16, fill: {normal: {seed: 1}}}
  b: {Sizes: [1, 1, 40, 31], DataType: FLOAT16, fill: {normal: {seed: 2}}}
  c: {Sizes: [1, 1, 9, 31], DataType: FLOAT16, fill: {normal: {seed: 3}}}
  d: {Sizes: [1, 1, 9, 31], DataType: FLOAT16, fill: {normal: {seed: 4}}}
nodes:
  product:
    operator: GEMM
    desc: {ATensor: a, BTensor: b, OutputTensor: {Sizes: [1, 1, 9, 31]}, TransA: NONE,
           TransB: NONE, Alpha: 1, Beta: 0}
  sum: {operator: ELEMENT_WISE_ADD, desc: {ATensor: product, BTensor: c, OutputTensor: {}}}
  scaled: {operator: ELEMENT_WISE_MULTIPLY, desc: {ATensor: sum, BTensor: d, OutputTensor: {}}}
  weights: {operator: ACTIVATION_SOFTMAX1, desc: {InputTensor: scaled, OutputTensor: {}, Axes: [3]}}
outputs: {y: weights}
"""
"""A softmax of (a @ b + c) * d in FLOAT16."""


def graph_file(folder: Path, *graphs: str) -> Path:
    """Write a case file whose graphs, at most 8, are named `a`, `b` and so on; return its path."""
    assert len(graphs) <= len("abcdefgh")
    text = "graph: graphs of a test\ncases:\n"
    for letter, graph in zip("abcdefgh", graphs, strict=False):
        text += f"- name: {letter}\n" + indent(graph.strip("\n"), "  ") + "\n"
    path = folder / "graphs.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def planned_graph(folder: Path, graph: str) -> PlannedCase:
    return next(load_suite([graph_file(folder, graph)]).plan())


def graph_case(folder: Path, graph: str) -> GraphCase:
    case = build(planned_graph(folder, graph))
    assert isinstance(case, GraphCase)
    return case
