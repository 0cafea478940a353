"""Nodes of a graph may take subnormal numbers for zero, and give zeros of either sign.

Each choice leads to a right output of the graph, and what lies between two of them is wrong.

The tested code is in `dmlconf/permitted/graphs/alternatives.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.model import Case
from dmlconf.permitted.graphs.alternatives import PASS_SIGNS_ON
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array
from tests.bundled import bundled
from tests.permitted.graphs.accepted import Values, accepts, graph

ONE = "Sizes: [1], DataType: FLOAT32"


FLUSHED: Final[Mapping[str, tuple[str, str, Values, Values]]] = {
    "subnormal input": (
        "[1.0e-44]",
        "ELEMENT_WISE_SQRT, desc: {InputTensor: x, OutputTensor: {}}",
        [0.0],
        [1.0e-20],
    ),
    "subnormal bias": (
        "[0]",
        "ELEMENT_WISE_SQRT, desc: {InputTensor: x, OutputTensor: {}, "
        "ScaleBias: {Scale: 1, Bias: 1.0e-44}}",
        [0.0],
        [1.0e-20],
    ),
    "subnormal exponent": (
        "[.inf]",
        "ELEMENT_WISE_CONSTANT_POW, desc: {InputTensor: x, OutputTensor: {}, Exponent: 1.0e-44}",
        [np.nan],
        [1.0],
    ),
    "subnormal factor": (
        "[1.0e+38]",
        "ACTIVATION_LINEAR, desc: {InputTensor: x, OutputTensor: {}, Alpha: 1.0e-39, Beta: 0.25}",
        [0.25],
        [0.5],
    ),
}
"""The input x, the node, its output if the subnormal number is flushed, and a wrong output."""


@pytest.mark.parametrize("name", FLUSHED)
def test_a_node_may_flush_a_subnormal_number(tmp_path: Path, name: str) -> None:
    values, node, flushed, wrong = FLUSHED[name]
    nodes = f"\n  node: {{operator: {node}}}"
    case = graph(tmp_path, f"\n  x: {{{ONE}, values: {values}}}", nodes)
    assert accepts(case, "y", evaluate(case)["y"].tolist())
    assert accepts(case, "y", flushed)
    assert not accepts(case, "y", wrong)


@pytest.mark.slow
def test_each_node_may_flush_a_subnormal_number_on_its_own(tmp_path: Path) -> None:
    """Two nodes read 1.1e-38."""
    nodes = """
  first: {operator: ELEMENT_WISE_SQRT, desc: {InputTensor: x, OutputTensor: {}}}
  second: {operator: ELEMENT_WISE_RECIP, desc: {InputTensor: x, OutputTensor: {}}}
  scaled:
    operator: ACTIVATION_LINEAR
    desc: {InputTensor: first, OutputTensor: {}, Alpha: 1.0e+22, Beta: 1}
  node: {operator: ELEMENT_WISE_ADD, desc: {ATensor: scaled, BTensor: third, OutputTensor: {}}}
  third: {operator: ACTIVATION_HARD_SIGMOID,
          desc: {InputTensor: second, OutputTensor: {}, Alpha: 1.0e-38, Beta: 0}}
"""
    case = graph(tmp_path, f"\n  x: {{{ONE}, values: [1.1e-38]}}", nodes)
    root = 1.1e-38**0.5 * 1e22 + 1
    third = 1e-38 / 1.1e-38
    for values in ([root + third], [1 + third], [root + 1], [2]):
        assert accepts(case, "y", values), values
    assert not accepts(case, "y", [(root + 1 + third) / 2])


SIGNED = {
    "MIN": "ELEMENT_WISE_MIN, desc: {ATensor: x, BTensor: z, OutputTensor: {}}",
    "MAX": "ELEMENT_WISE_MAX, desc: {ATensor: z, BTensor: x, OutputTensor: {}}",
    "CLIP": "ELEMENT_WISE_CLIP, desc: {InputTensor: x, OutputTensor: {}, Min: -1, Max: 0,"
    " ScaleBias: {Scale: 1, Bias: 0}}",
}
"""Nodes that choose between 0 and -0."""


@pytest.mark.parametrize("operator", SIGNED)
def test_a_zero_may_have_either_sign(tmp_path: Path, operator: str) -> None:
    inputs = "\n  x: {Sizes: [2], DataType: FLOAT32, values: [0.0, -0.5]}"
    if "z" in SIGNED[operator]:
        inputs += "\n  z: {Sizes: [2], DataType: FLOAT32, values: [-0.0, -0.5]}"
    nodes = f"""
  zero: {{operator: {SIGNED[operator]}}}
  node: {{operator: ELEMENT_WISE_RECIP, desc: {{InputTensor: zero, OutputTensor: {{}}}}}}"""
    case = graph(tmp_path, inputs, nodes)
    assert accepts(case, "y", [np.inf, -2])
    assert accepts(case, "y", [-np.inf, -2])
    assert not accepts(case, "y", [np.nan, -2])
    assert not accepts(case, "y", [1e38, -2])


@pytest.mark.parametrize("operator", sorted(PASS_SIGNS_ON))
def test_operators_that_pass_signs_on_give_equal_numbers(operator: str) -> None:
    plan = list(bundled(f"{operator.lower()}/matrix.yaml").plan())
    cases = [build(planned) for planned in plan[:: max(1, len(plan) // 20)]]
    small = [case for case in cases if not case.violations() and _has_few_numbers(case)]
    assert len(small) >= 6
    for case in small:
        plus, minus = (
            evaluate(case.with_data({n: _every_third(a, zero) for n, a in case.inputs().items()}))
            for zero in (0.0, -0.0)
        )
        for name, values in plus.items():
            np.testing.assert_array_equal(minus[name], values)


def _has_few_numbers(case: Case) -> bool:
    inputs = case.inputs().values()
    return any(array.dtype.kind == "f" for array in inputs) and all(a.size <= 1000 for a in inputs)


def _every_third(array: Array, zero: float) -> Array:
    """Return floats with `zero` for every third element, and other arrays unchanged."""
    if array.dtype.kind != "f":
        return array
    changed = array.copy()
    changed.flat[::3] = zero
    return changed


def test_the_signs_of_two_zeros_are_independent(tmp_path: Path) -> None:
    """The reciprocals are infinities, whose sum is NaN if the signs differ."""
    nodes = """
  zero: {operator: ELEMENT_WISE_MIN, desc: {ATensor: x, BTensor: z, OutputTensor: {}}}
  other: {operator: ELEMENT_WISE_MAX, desc: {ATensor: x, BTensor: z, OutputTensor: {}}}
  first: {operator: ELEMENT_WISE_RECIP, desc: {InputTensor: zero, OutputTensor: {}}}
  second: {operator: ELEMENT_WISE_RECIP, desc: {InputTensor: other, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_ADD, desc: {ATensor: first, BTensor: second, OutputTensor: {}}}"""
    inputs = "".join(f"\n  {n}: {{{ONE}, values: [{v}]}}" for n, v in (("x", "0.0"), ("z", "-0.0")))
    case = graph(tmp_path, inputs, nodes)
    for value in (np.inf, -np.inf, np.nan):
        assert accepts(case, "y", [value])
    assert not accepts(case, "y", [0])


def test_a_zero_that_is_copied_keeps_its_sign(tmp_path: Path) -> None:
    nodes = """
  copy: {operator: ELEMENT_WISE_IDENTITY, desc: {InputTensor: x, OutputTensor: {}}}
  node: {operator: ELEMENT_WISE_RECIP, desc: {InputTensor: copy, OutputTensor: {}}}"""
    case = graph(tmp_path, f"\n  x: {{{ONE}, values: [-0.0]}}", nodes)
    assert accepts(case, "y", [-np.inf])
    assert not accepts(case, "y", [np.inf])
