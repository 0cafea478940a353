"""Small case files, and functions that plan and build their cases."""

from __future__ import annotations

from pathlib import Path

from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, PlannedCase

TILE = """
operator: TILE
cases:
  - name: stated
    desc: &tile
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 2]}
  - name: unstated
    desc: *tile
  - name: invalid
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32}
      OutputTensor: {Sizes: [5], DataType: FLOAT32}
      Repeats: [2]
    expect: {rejected: E_INVALIDARG, constraint: output-sizes}
  - name: undocumented
    desc:
      InputTensor: {Sizes: [1], DataType: FLOAT64, values: [1]}
      OutputTensor: {Sizes: [2], DataType: FLOAT64}
      Repeats: [2]
    expect: {OutputTensor: [1, 1]}
"""
"""Four cases; the page of TILE lists no FLOAT64, so a backend may refuse the last case."""

FIRST_CASE_BUILDS = """
operator: TILE
cases:
  - matrix: {Count: [1, 2, 3]}
    desc:
      InputTensor: {Sizes: "=(Count,)", DataType: INT32, values: [7]}
      OutputTensor: {Sizes: "=(Count,)", DataType: INT32}
      Repeats: [1]
"""
"""Three cases, of which only the first can be built: the others lack values."""


def write(directory: Path, text: str = TILE, name: str = "mixed.yaml") -> Path:
    path = directory / name
    path.write_text(text, encoding="utf-8")
    return path


def plan(directory: Path, *names: str) -> list[PlannedCase]:
    """Write TILE, and plan its cases, or those of these names."""
    planned = load_suite([write(directory)]).plan()
    return [case for case in planned if not names or case.identifier.split("/")[-1] in names]


def case(directory: Path, name: str) -> Case:
    return build(plan(directory, name)[0])


def numbered_cases(directory: Path, count: int) -> list[PlannedCase]:
    """Return a plan of `count` cases such as `many[Number=7]`, with expectations."""
    text = f"""
operator: TILE
cases:
  - matrix: {{Number: "=range({count})"}}
    desc:
      InputTensor: {{Sizes: [1], DataType: INT32, values: =Number}}
      OutputTensor: {{Sizes: [2], DataType: INT32}}
      Repeats: [2]
    expect: {{OutputTensor: "=(Number, Number)"}}
"""
    return list(load_suite([write(directory, text, "many.yaml")]).plan())
