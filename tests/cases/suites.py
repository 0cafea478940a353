"""Small case files for tests, and functions that load them."""

from __future__ import annotations

from pathlib import Path

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, PlannedCase

TILE = """\
operator: TILE
cases:
  - name: a
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 2]}
"""

MATRIX = """\
operator: TILE
cases:
  - matrix:
      A: [1, 2]
      B: [x, y]
    desc:
      InputTensor: {Sizes: "=(A,)", DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: "=(2 * A,)", DataType: FLOAT32}
      Repeats: [2]
"""
"""A matrix of four cases; B changes only their identifiers."""

PRODUCT = """\
operator: GEMM
cases:
  - name: product
    desc:
      ATensor: {Sizes: [1, 1, 2, 3], DataType: FLOAT32, values: [1.1, 2.2, 3.3, 4, 5, 6]}
      BTensor: {Sizes: [1, 1, 3, 2], DataType: FLOAT32, values: [0.5, 1, 2.5, 2, 4, 3]}
      OutputTensor: {Sizes: [1, 1, 2, 2], DataType: FLOAT32}
      TransA: NONE
      TransB: NONE
      Alpha: 1.0
      Beta: 0.0
"""

MEAN = """\
operator: REDUCE
cases:
  - name: mean
    desc:
      InputTensor: {Sizes: [1, 1, 1, 4], DataType: FLOAT32, values: [1, 2, 3, 5]}
      OutputTensor: {Sizes: [1, 1, 1, 1], DataType: FLOAT32}
      Function: AVERAGE
      Axes: [3]
"""

SUM = """\
operator: ELEMENT_WISE_ADD
cases:
  - name: sum
    desc:
      ATensor: {Sizes: [7], DataType: FLOAT32, fill: {uniform: {low: -1, high: 1, seed: 3}}}
      BTensor: {Sizes: [7], DataType: FLOAT32, fill: {uniform: {low: -1, high: 1, seed: 4}}}
      OutputTensor: {Sizes: [7], DataType: FLOAT32}
"""

ARGMIN = """\
operator: ARGMIN
cases:
  - desc:
      InputTensor: {Sizes: [3], DataType: FLOAT32, values: [2, 1, 3]}
      OutputTensor: {Sizes: [1], DataType: UINT32}
      Axes: [0]
      AxisDirection: INCREASING
"""

JOIN = """\
operator: JOIN
cases:
  - desc:
      InputTensors:
        - {Sizes: [1], DataType: INT8, values: [1]}
        - {Sizes: [2], DataType: INT8, fill: sequence}
      OutputTensor: {Sizes: [3], DataType: INT8}
      Axis: 0
    expect: {OutputTensor: [1, 0, 1]}
"""

JOIN_MATRIX = """\
operator: JOIN
cases:
  - matrix: {Count: [3]}
    desc:
      InputTensors:
        repeat: =Count
        of: {Sizes: "=(Index + 1,)", DataType: INT8, fill: {constant: {value: =Index}}}
      OutputTensor: {Sizes: [6], DataType: INT8}
      Axis: 0
"""
"""A join of three inputs with 1, 2 and 3 elements."""


def replace_once(text: str, old: str, new: str) -> str:
    """Return the text with its only `old` replaced."""
    assert text.count(old) == 1, f"{old!r} is {text.count(old)} times in the text"
    return text.replace(old, new)


def plan(directory: Path, text: str, name: str = "f.yaml") -> list[PlannedCase]:
    """Return the planned cases of a case file with this text."""
    path = directory / name
    path.write_text(text, "utf-8")
    return list(load_suite([path]).plan())


def built(directory: Path, text: str) -> Case:
    """Return the only case of a case file with this text."""
    (planned,) = plan(directory, text)
    return build(planned)
