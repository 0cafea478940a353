"""Generated cases are valid and differ, and a seed gives the same ones on every machine.

The tested code is in `dmlconf/fuzzing/operators.py`, `dmlconf/fuzzing/data.py`,
`dmlconf/fuzzing/goals.py` and `dmlconf/fuzzing/layouts.py`.
"""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from math import prod

import pytest

from dmlconf.cases.loading.loader import valid_case
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.data import data_of
from dmlconf.fuzzing.goals import Part, goals_of
from dmlconf.fuzzing.operators import fuzzed_desc, operator_case
from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.layout import LAYOUTS

SAMPLE = ["CONVOLUTION", "GATHER_ND", "GEMM", "JOIN", "LSTM", "PADDING1", "QUANTIZE", "TOP_K1"]

NOT_OWNED = "inputs-not-owned-by-dml"

OPERATORS_WITH_WINDOWS = [
    name
    for name in operator_names()
    if "WindowSize" in {field.name for field in operator(name).fields}
]
UNREACHABLE = {
    "MULTIHEAD_ATTENTION1": {"layout PastSequenceLengthsTensor broadcast"},
    "SCATTER_ND": {"layout IndicesTensor broadcast"},
}
"""Goals that no case of these operators reaches, since a constraint forbids the layout."""


def digest(name: str, seed: int, number: int) -> str:
    entry = operator_case(name, seed, number).template.data
    return sha256(json.dumps(entry).encode()).hexdigest()[:16]


def test_seed_and_number_determine_a_case() -> None:
    actual = {name: digest(name, 7, number) for number, name in enumerate(SAMPLE)}
    assert actual == {
        "CONVOLUTION": "9f53f84ae7790bb3",
        "GATHER_ND": "9c5497f908337909",
        "GEMM": "5463969f0a1e63d2",
        "JOIN": "27b9e16ff676a644",
        "LSTM": "4cff7e17388bdbe5",
        "PADDING1": "5abbd5b8dc450e70",
        "QUANTIZE": "955348c79f23de2f",
        "TOP_K1": "97dff6fa98bf7f67",
    }


def test_other_seeds_and_numbers_make_other_cases() -> None:
    assert len({digest("GEMM", seed, number) for seed in range(4) for number in range(4)}) == 16


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLE)
def test_cases_are_valid_and_nearly_all_different(name: str) -> None:
    cases = [valid_case(operator_case(name, 1, number)) for number in range(20)]
    assert not any(case.violations() for case in cases)
    assert len({repr(case.desc) for case in cases}) >= 19


def test_identifier_has_seed_and_number() -> None:
    planned = operator_case("TILE", 5, 3)
    assert planned.identifier == valid_case(planned).identifier == "tile/fuzz-5/3"


def test_sizes_are_often_odd_or_multiples_of_eight() -> None:
    sizes: Counter[int] = Counter()
    for number in range(200):
        desc = fuzzed_desc(operator("ACTIVATION_RELU"), 1, number, Chance(1, number)).desc
        sizes.update(desc["InputTensor"].Sizes)
    several = {size: count for size, count in sizes.items() if size > 1}
    odd = sum(count for size, count in several.items() if size % 2)
    eights = sum(count for size, count in several.items() if size % 8 == 0)
    assert odd > 0.4 * sum(several.values())
    assert eights > 0.15 * sum(several.values())


def test_some_inputs_are_special_numbers_or_constants() -> None:
    fills = [
        next(
            iter(
                operator_case("ACTIVATION_RELU", 1, n).template.data["desc"]["InputTensor"]["fill"]
            )
        )
        for n in range(200)
    ]
    assert fills.count("specials") > 10
    assert fills.count("constant") > 2
    assert fills.count("specials") + fills.count("constant") < 100


@pytest.mark.slow
def test_any_dimension_may_have_a_stride_of_0() -> None:
    repeated: Counter[int] = Counter()
    for number in range(200):
        desc = fuzzed_desc(operator("GEMM"), 1, number, Chance(1, number)).desc
        matrix = desc["ATensor"]
        if matrix.Strides is not None and matrix.DimensionCount == 4:
            pairs = zip(matrix.Sizes, matrix.Strides, strict=True)
            repeated.update(i for i, (size, s) in enumerate(pairs) if size > 1 and s == 0)
    assert repeated.keys() == {0, 1, 2, 3}


def layouts_of(tensor: TensorDesc) -> list[str]:
    return [name for name, strides in LAYOUTS.items() if strides(tensor.Sizes) == tensor.Strides]


@pytest.mark.fuzz
@pytest.mark.parametrize("name", [name for name in operator_names() if operator(name).fields])
def test_two_cases_for_each_goal_reach_all_goals(
    name: str,
) -> None:
    entry = operator(name)
    goals = goals_of(entry)
    descs: set[str] = set()
    reached: set[str] = set()
    for number in range(2 * len(goals)):
        case = valid_case(operator_case(name, 1, number))
        assert not case.violations()
        descs.add(repr(case.desc))
        layout_or_flag = {Part.LAYOUT, Part.FLAG}
        reached |= {str(g) for g in goals if g.part not in layout_or_flag and g.holds(case.desc)}
        for _, field, tensor in tensors_of(entry, case.desc):
            reached |= {f"{Part.FLAG} {field.name} {flag}" for flag in tensor.Flags}
            reached |= {f"{Part.LAYOUT} {field.name} {each}" for each in layouts_of(tensor)}
    owned = not any(constraint.name == NOT_OWNED for constraint in entry.constraints)
    wanted = {str(goal) for goal in goals if owned or goal.part != Part.FLAG}
    wanted -= UNREACHABLE.get(name, set())
    assert wanted - reached == set()
    assert len(descs) >= 0.9 * 2 * len(goals)


@pytest.mark.parametrize("seed", range(3, 7))
def test_cases_are_valid_with_and_without_a_fused_operator(seed: int) -> None:
    fused = set()
    for number in range(80):
        planned = operator_case("GEMM", seed, number)
        case = valid_case(planned)
        assert case.identifier == planned.identifier
        fused.add(case.desc["FusedActivation"] is not None)
    assert fused == {True, False}


@pytest.mark.slow
def test_no_two_outputs_in_place_share_a_buffer() -> None:
    pairs = [
        operator_case("ADAM_OPTIMIZER", 41, number).template.data.get("in_place", {})
        for number in range(60)
    ]
    assert any(len(each) > 1 for each in pairs)
    assert all(len(set(each.values())) == len(each) for each in pairs)


def test_numbers_for_a_long_axis_fit_float16() -> None:
    """The largest number of FLOAT16 is 65504."""
    tensor = TensorDesc(DataType.FLOAT16, (65537, 1))
    desc = {"InputTensor": tensor, "OutputTensor": tensor, "ScaleBias": None}
    identity = operator("ELEMENT_WISE_IDENTITY")
    fills = [data_of(identity, desc, Chance(seed))["InputTensor"]["fill"] for seed in range(200)]
    limits = {fill["uniform"]["high"] for fill in fills if "uniform" in fill}
    assert 65504 in limits
    assert max(limits) <= 65504


def test_windows_and_sequences_have_limits() -> None:
    """Without limits, these two cases would take minutes."""
    pooling = operator_case("MAX_POOLING1", 1, 69).template.data["desc"]
    outputs = prod(pooling["OutputTensor"]["Sizes"])
    assert prod(pooling["WindowSize"]) * outputs <= 2**24
    layer = operator_case("RNN", 3, 997).template.data["desc"]
    assert layer["InputTensor"]["Sizes"][-3] <= 2**12


@pytest.mark.parametrize("name", OPERATORS_WITH_WINDOWS)
def test_each_operator_with_windows_has_cases(name: str) -> None:
    """`operator_case` raises an error if it finds no desc within the limit for windows."""
    assert all("WindowSize" in operator_case(name, 1, n).template.data["desc"] for n in range(4))
