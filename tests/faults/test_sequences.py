"""A known fault is waived: DirectML writes the sequences of a graph to each other's outputs.

A sequence is the output of a node FILL_VALUE_SEQUENCE. The waived outputs were measured on DirectML
1.13.1 to 1.15.4.

The tested code is in `dmlconf/faults/graphs/sequences.py` and `schemas/known-faults.yaml`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Environment,
    Fault,
    FaultKind,
    Outcome,
    Outputs,
)
from dmlconf.backends.registry import parse
from dmlconf.engine.session import reference
from dmlconf.excuses.known_fault_file import known_faults
from dmlconf.faults.graphs.sequences import numbers_written
from dmlconf.judging.judge import judge
from dmlconf.tensors.datatypes import Array
from dmlconf.verdicts.verdict import Status
from tests.graphs.suites import graph_case

EXCHANGED = "sequences-in-place-of-each-other"
INPUT = "inputs: {x: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}}\n"
NEGATED_INPUT_NODE = (
    "  m: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: x, OutputTensor: {}}}\n"
)


def sequence(name: str, start: int, count: int, data_type: str = "FLOAT32") -> str:
    """Return a node that makes a sequence, and a node `nNAME` that negates it."""
    tensor = f"{{Sizes: [{count}], DataType: {data_type}}}"
    values = f"ValueDataType: {data_type}, ValueStart: {start}, ValueDelta: 2"
    desc = f"{{OutputTensor: {tensor}, {values}}}"
    read = f"{{operator: ELEMENT_WISE_NEGATE, desc: {{InputTensor: {name}, OutputTensor: {{}}}}}}"
    return f"  {name}: {{operator: FILL_VALUE_SEQUENCE, desc: {desc}}}\n  n{name}: {read}\n"


def graph(nodes: str, outputs: str, head: str = "") -> str:
    """Return a graph as YAML; `outputs` names nodes, and `head` has inputs and constants."""
    named = ", ".join(f"{name}: {name}" for name in outputs.split())
    return f"{head}nodes:\n{nodes}outputs: {{{named}}}\n"


def floats(*values: float) -> Array:
    return np.array(values, np.float32)


def fault_of(folder: Path, text: str, outcome: Outcome, version: str = "1.15.4") -> str:
    """Return the name of the fault that waives the graph; "" if it fails."""
    faults = known_faults(Environment("directml", version, "an adapter", "1.0"))
    case = graph_case(folder, text)
    verdict = judge(case, outcome, reference("numpy", parse("directml")))
    verdict = faults.waive(case, outcome, verdict)
    assert verdict.reason is not None
    return verdict.reason.message.partition(",")[0] if verdict.status is Status.WAIVED else ""


# Sequences of two elements, such as 1 and 3.
A, B, C = sequence("a", 1, 2), sequence("b", 10, 2), sequence("c", 20, 2)
NEGATED_SEQUENCES = {"na": floats(-1, -3), "nb": floats(-10, -12), "nc": floats(-20, -22)}
NEGATED_INPUT = {"m": floats(-1, -2)}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (graph(A + B, "b a na nb"), {"b": floats(1, 3), "a": floats(10, 12)}),
        (
            graph(A + B + NEGATED_INPUT_NODE, "m b a na nb", INPUT),
            {"b": floats(1, 3), "a": floats(10, 12), **NEGATED_INPUT},
        ),
        # The order of the nodes decides which sequence is the first.
        (graph(B + A, "a b na nb"), {"a": floats(10, 12), "b": floats(1, 3)}),
        (
            graph(A + B + C, "b c a na nb nc"),
            {"b": floats(1, 3), "c": floats(10, 12), "a": floats(20, 22)},
        ),
        # A sequence that is no output of the graph counts as well.
        (graph(A + B + C, "c na a nb nc"), {"c": floats(1, 3), "a": floats(20, 22)}),
    ],
)
def test_exchanged_sequences_are_waived(tmp_path: Path, text: str, wrong: dict[str, Array]) -> None:
    names = graph_case(tmp_path, text).outputs()
    arrays = {name: {**NEGATED_SEQUENCES, **wrong}[name] for name in names}
    assert fault_of(tmp_path, text, Outputs(arrays)) == EXCHANGED
    assert fault_of(tmp_path, text, Outputs(arrays), "1.12.1") == ""
    assert len(arrays) >= 4
    for name, array in arrays.items():
        other = {**arrays, name: array + floats(0, 1)}
        assert fault_of(tmp_path, text, Outputs(other)) == "", f"{name} is wrong otherwise"


@pytest.mark.parametrize("outputs", ["na nb a b", "a na b nb", "b na a nb"])
def test_exchanged_sequences_of_another_order_are_not_waived(tmp_path: Path, outputs: str) -> None:
    right = {**NEGATED_SEQUENCES, "a": floats(1, 3), "b": floats(10, 12)}
    names = outputs.split()
    arrays = {name: right[name] for name in names}
    exchanged = {**arrays, "b": right["a"], "a": right["b"]}
    written_to_the_first_outputs = {**arrays, names[0]: right["a"], names[1]: right["b"]}
    for wrong in (exchanged, written_to_the_first_outputs):
        assert fault_of(tmp_path, graph(A + B, outputs), Outputs(wrong)) == ""


def test_sequences_are_numbered_after_inputs_and_constants(
    tmp_path: Path,
) -> None:
    """The input has number 0, the constant 1, and sequence `a`, which is no output, 2."""
    constant = "constants: {k: {Sizes: [2], DataType: FLOAT32, values: [3, 4]}}\n"
    add = "  m: {operator: ELEMENT_WISE_ADD, desc: {ATensor: x, BTensor: k, OutputTensor: {}}}\n"
    case = graph_case(tmp_path, graph(A + B + add, "m na b nb", INPUT + constant))
    assert numbers_written(case.graph, "FILL_VALUE_SEQUENCE") == {"b": 3}


def test_lost_device_is_not_waived_as_exchanged_sequences(tmp_path: Path) -> None:
    removed_device = Breakdown(BreakdownKind.DEVICE_REMOVED, "it is gone")
    assert fault_of(tmp_path, graph(A + B, "b a na nb"), removed_device) == ""
    removed = "sequence-that-is-an-output-too"
    assert fault_of(tmp_path, graph(A + B, "b na a nb"), removed_device) == removed


LONG = graph(sequence("a", 1, 3) + B, "b a na nb")
"""Sequence `a`, which has 3 elements, is written to output `b`, which has 2, and vice versa."""

SPILT = Fault(FaultKind.GUARD_BAND, "4 bytes of a guard band changed")
LAST_UNWRITTEN = Fault(FaultKind.NOT_WRITTEN, "not written", "a", np.array([2]))


@pytest.mark.parametrize(
    ("faults", "name"),
    [
        ((SPILT, LAST_UNWRITTEN), EXCHANGED),
        ((Fault(FaultKind.NOT_WRITTEN, "not written", "a", np.array([1, 2])),), ""),
        ((Fault(FaultKind.NOT_WRITTEN, "not written", "b", np.array([1])),), ""),
        ((SPILT, Fault(FaultKind.INPUT, "an input changed")), ""),
    ],
)
def test_only_damage_past_the_shorter_end_is_waived(
    tmp_path: Path, faults: tuple[Fault, ...], name: str
) -> None:
    # The last element of `a` is not written: -7e8 was in memory before.
    arrays = {"b": floats(1, 3), "a": floats(10, 12, -7e8)}
    nodes = {"na": floats(-1, -3, -5), "nb": floats(-10, -12)}
    assert fault_of(tmp_path, LONG, Outputs({**arrays, **nodes}, faults=faults)) == name


def test_guard_band_is_not_waived_for_equal_sizes(
    tmp_path: Path,
) -> None:
    arrays = {
        "b": floats(1, 3),
        "a": floats(10, 12),
        "na": NEGATED_SEQUENCES["na"],
        "nb": NEGATED_SEQUENCES["nb"],
    }
    text = graph(A + B, "b a na nb")
    assert fault_of(tmp_path, text, Outputs(arrays, faults=(SPILT,))) == ""


def test_sequences_of_two_data_types_exchange_bits(
    tmp_path: Path,
) -> None:
    text = graph(A + sequence("b", 10, 2, "INT32"), "b a na nb")
    nodes = {"na": NEGATED_SEQUENCES["na"], "nb": np.array([-10, -12], np.int32)}
    seen = {"b": floats(1, 3).view(np.int32), "a": np.array([10, 12], np.int32).view(np.float32)}
    assert fault_of(tmp_path, text, Outputs({**seen, **nodes})) == EXCHANGED
    numbers = {"b": np.array([1, 3], np.int32), "a": floats(10, 12)}
    assert fault_of(tmp_path, text, Outputs({**numbers, **nodes})) == ""
