"""Known faults in graphs are recognised by a node's desc and its connections.

The tested code is in `dmlconf/excuses/known_faults.py`, `dmlconf/faults/graphs/fused_sums.py`,
`dmlconf/faults/graphs/joins.py`, `dmlconf/faults/graphs/sequences.py`,
`dmlconf/faults/graphs/unknown.py`, `dmlconf/faults/prediction.py` and
`schemas/known-faults.yaml`.
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
    Rejection,
)
from dmlconf.backends.registry import parse
from dmlconf.engine.session import reference
from dmlconf.excuses.known_fault_file import known_faults
from dmlconf.judging.judge import judge
from dmlconf.verdicts.verdict import Status
from tests.graphs.suites import graph_case

SEQUENCE = (
    "{operator: FILL_VALUE_SEQUENCE, desc: {OutputTensor: {Sizes: [5], DataType: FLOAT32}, "
    "ValueDataType: FLOAT32, ValueStart: 1, ValueDelta: 2}}"
)
CONSTANT = (
    "{operator: FILL_VALUE_CONSTANT, desc: {OutputTensor: {Sizes: [5], DataType: FLOAT32}, "
    "ValueDataType: FLOAT32, Value: 4}}"
)
NEGATE = "{operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: %s, OutputTensor: {}}}"
INPUT = "inputs: {x: {Sizes: [5], DataType: FLOAT32, values: [1, 2, 3, 4, 5]}}\n"
READ_SEQUENCE = f"nodes:\n  f: {SEQUENCE}\n  n: {NEGATE % 'f'}\n"


def waiving_fault(folder: Path, graph: str, outcome: Outcome, version: str = "1.15.4") -> str:
    """Return the name of the fault that waives the graph; "" if it fails."""
    case = graph_case(folder, graph)
    faults = known_faults(Environment("directml", version, "an adapter", "1.0"))
    verdict = judge(case, outcome, reference("numpy", parse("directml")))
    verdict = faults.waive(case, outcome, verdict)
    assert verdict.reason is not None
    assert verdict.status.fails_run is (verdict.status is not Status.WAIVED)
    return verdict.reason.message.partition(",")[0] if verdict.status is Status.WAIVED else ""


@pytest.mark.parametrize(
    ("graph", "kind", "name"),
    [
        (
            f"{INPUT}{READ_SEQUENCE}  m: {NEGATE % 'x'}\noutputs: {{y: f, z: n, w: m}}\n",
            BreakdownKind.DEVICE_REMOVED,
            "sequence-that-is-an-output-too",
        ),
        (
            f"{READ_SEQUENCE}outputs: {{z: n, y: f}}\n",
            BreakdownKind.DEVICE_REMOVED,
            "sequence-that-is-an-output-too",
        ),
        # The node FILL_VALUE_CONSTANT is no input of the graph.
        (
            f"nodes:\n  c: {CONSTANT}\n  f: {SEQUENCE}\n  n: {NEGATE % 'f'}\n  m: {NEGATE % 'c'}\n"
            "outputs: {z: n, y: f, w: m}\n",
            BreakdownKind.DEVICE_REMOVED,
            "sequence-that-is-an-output-too",
        ),
        (
            f"{READ_SEQUENCE}  g: {SEQUENCE}\n  m: {NEGATE % 'g'}\noutputs: {{y: g, z: n, w: m}}\n",
            BreakdownKind.DEVICE_REMOVED,
            "sequence-that-is-an-output-too",
        ),
        (
            f"{READ_SEQUENCE}  g: {SEQUENCE}\noutputs: {{z: n, y: g}}\n",
            BreakdownKind.CRASH,
            "sequence-that-feeds-no-node",
        ),
    ],
)
def test_breakdowns_by_sequences_are_waived_but_hangs_are_not(
    tmp_path: Path, graph: str, kind: BreakdownKind, name: str
) -> None:
    gone = Breakdown(kind, "it is gone")
    assert waiving_fault(tmp_path, graph, gone) == name
    assert waiving_fault(tmp_path, graph, gone, "1.8.0") == ""
    assert waiving_fault(tmp_path, graph, Breakdown(BreakdownKind.HANG, "no result")) == ""


def test_refusal_of_a_sequence_beside_a_split_is_waived(tmp_path: Path) -> None:
    refused = Rejection("CompileGraph", "E_INVALIDARG")
    parts = "[{Sizes: [2], DataType: FLOAT32}, {Sizes: [3], DataType: FLOAT32}]"
    split = f"{{operator: SPLIT, desc: {{InputTensor: x, OutputTensors: {parts}, Axis: 0}}}}"
    outputs = "z: 's.OutputTensors[0]', w: 's.OutputTensors[1]'}\n"
    graph = f"{INPUT}nodes:\n  f: {SEQUENCE}\n  s: {split}\noutputs: {{y: f, {outputs}"
    assert waiving_fault(tmp_path, graph, refused) == "sequence-beside-a-split"
    assert waiving_fault(tmp_path, graph, refused, "1.14.1") == ""
    alone = f"{INPUT}nodes:\n  f: {SEQUENCE}\n  n: {NEGATE % 'x'}\noutputs: {{y: f, z: n}}\n"
    assert waiving_fault(tmp_path, alone, refused) == ""


POOLING = """\
inputs:
  x: {Sizes: [1, 1, 1, 6], DataType: FLOAT32, values: [3, 1, 4, 1, 5, 9]}
  a: {Sizes: [5], DataType: FLOAT32, values: [1, 2, 3, 4, 5]}
nodes:
  f: %s
  p:
    operator: MAX_POOLING1
    desc: {InputTensor: x, OutputTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT32},
           OutputIndicesTensor: {Sizes: [1, 1, 1, 3], DataType: UINT32}, Strides: [1, 2],
           WindowSize: [1, 2], StartPadding: [0, 0], EndPadding: [0, 0]}
  n: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: a, OutputTensor: {}}}
  m: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: p, OutputTensor: {}}}
outputs: {%s}
"""
"""Two inputs and a sequence, for which the output with the number 2 is taken."""


@pytest.mark.parametrize(
    ("outputs", "refused"),
    [
        ("y: f, z: p, i: p.OutputIndicesTensor, w: n, v: m", True),
        ("y: f, i: p.OutputIndicesTensor, z: p, w: n, v: m", True),
        ("z: p, w: n, i: p.OutputIndicesTensor, y: f, v: m", True),
        ("w: n, u: n, v: m, i: p.OutputIndicesTensor, y: f", False),
        ("v: m, w: n, i: p.OutputIndicesTensor, y: f", True),  # v is made of the pooling
        ("y: f, w: n, z: p, i: p.OutputIndicesTensor, v: m", False),  # the first of the pooling
        ("z: p, i: p.OutputIndicesTensor, y: f, w: n, v: m", False),  # the sequence's own number
        ("z: p, y: f, w: n, i: p.OutputIndicesTensor, v: m", False),
        ("w: n, y: f, u: n, v: m", True),  # the same tensor twice
        ("w: n, v: m, y: f", False),
    ],
)
def test_refusal_of_a_sequence_is_waived_by_the_output_taken_for_it(
    tmp_path: Path, outputs: str, refused: bool
) -> None:
    graph = POOLING % (SEQUENCE, outputs)
    outcome = Rejection("CompileGraph", "E_INVALIDARG")
    expected = "sequence-beside-several-outputs-of-a-node" if refused else ""
    for version in ("1.13.1", "1.14.1", "1.15.4"):
        assert waiving_fault(tmp_path, graph, outcome, version) == expected
    assert waiving_fault(tmp_path, graph, outcome, "1.12.1") == ""
    constant = POOLING % (CONSTANT, outputs)
    assert waiving_fault(tmp_path, constant, outcome) == ""
    with_constant = graph.replace("  a: {", "constants:\n  a: {")
    assert waiving_fault(tmp_path, with_constant, outcome) == ""


@pytest.mark.parametrize(
    "graph",
    [
        f"{READ_SEQUENCE}outputs: {{y: f, z: n}}\n",
        f"{INPUT}{READ_SEQUENCE}  m: {NEGATE % 'x'}\noutputs: {{z: n, y: f, w: m}}\n",
        f"{READ_SEQUENCE}  g: {SEQUENCE}\n  m: {NEGATE % 'g'}\noutputs: {{z: n, y: g, w: m}}\n",
        f"{INPUT}{READ_SEQUENCE}  m: {NEGATE % 'x'}\noutputs: {{z: n, w: m}}\n",
    ],
)
def test_breakdowns_of_other_graphs_with_sequences_are_not_waived(
    tmp_path: Path, graph: str
) -> None:
    for kind in (BreakdownKind.DEVICE_REMOVED, BreakdownKind.CRASH):
        assert waiving_fault(tmp_path, graph, Breakdown(kind, "it is gone")) == ""


GATHER = """
inputs:
  x: {Sizes: [4, 13, 2, 3, 3, 3], DataType: FLOAT32, fill: sequence}
  k: {Sizes: [1, 1, 1, 1, 1, 7], DataType: UINT32, values: [0, 1, 2, 3, 4, 5, 12]}
nodes:
  g:
    operator: GATHER
    desc:
      InputTensor: x
      IndicesTensor: k
      OutputTensor: {Sizes: [SIZE, 7, 2, 3, 3, 3], DataType: FLOAT32}
      Axis: 1
      IndexDimensions: COUNT
  n: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: g, OutputTensor: {}}}
outputs: {y: n}
"""


PARTLY_WRITTEN = "gather-that-writes-a-part-of-its-output"


@pytest.mark.parametrize(("count", "size", "name"), [(5, 1, PARTLY_WRITTEN), (1, 4, "")])
def test_wrong_outputs_of_a_partly_written_gather_are_waived(
    tmp_path: Path, count: int, size: int, name: str
) -> None:
    graph = GATHER.replace("COUNT", str(count)).replace("SIZE", str(size))
    wrong = Outputs({"y": np.full((size, 7, 2, 3, 3, 3), 0.5, np.float32)})
    assert waiving_fault(tmp_path, graph, wrong) == name


@pytest.mark.parametrize(
    ("beside", "fault", "name"),
    [
        ([-1, -2], None, PARTLY_WRITTEN),
        ([-1, -2.5], None, ""),
        ([-1, -2], Fault(FaultKind.NOT_WRITTEN, "not written", "y", np.arange(3)), PARTLY_WRITTEN),
        ([-1, -2], Fault(FaultKind.NOT_WRITTEN, "not written", "z", np.arange(1)), ""),
        ([-1, -2], Fault(FaultKind.GUARD_BAND, "touched"), ""),
    ],
)
def test_only_what_reads_a_partly_written_gather_may_be_wrong(
    tmp_path: Path, beside: list[float], fault: Fault | None, name: str
) -> None:
    graph = GATHER.replace("COUNT", "5").replace("SIZE", "1")
    graph = graph.replace("nodes:", "  v: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}\nnodes:")
    graph = graph.replace("outputs: {y: n}", f"  m: {NEGATE % 'v'}\noutputs: {{y: n, z: m}}")
    wrong = np.full((1, 7, 2, 3, 3, 3), 0.5, np.float32)
    arrays = {"y": wrong, "z": np.array(beside, np.float32)}
    outcome = Outputs(arrays, faults=() if fault is None else (fault,))
    assert waiving_fault(tmp_path, graph, outcome) == name


REFUSED_GATHER = """
inputs:
  x: {Sizes: [1, 2, 1, 1, 1, 1, 1, 3], DataType: FLOAT32, values: [1, -2, 3, -4, 5, -6]}
  row: {Sizes: [1, 1, 1, 1, 1, 1, 1, 1], DataType: UINT32, values: [1]}
nodes:
  a: {operator: ELEMENT_WISE_IDENTITY, desc: {InputTensor: x, OutputTensor: {}}}
  g:
    operator: GATHER
    desc: {InputTensor: SOURCE, IndicesTensor: row, Axis: 1, IndexDimensions: COUNT,
           OutputTensor: {Sizes: [1, 1, 1, 1, 1, 1, 1, 3]}}
outputs: {y: g, z: a}
"""


@pytest.mark.parametrize(
    ("source", "count", "refused"), [("a", 7, True), ("a", 6, False), ("x", 7, False)]
)
def test_refused_gather_is_waived_if_a_node_feeds_it(
    tmp_path: Path, source: str, count: int, refused: bool
) -> None:
    graph = REFUSED_GATHER.replace("SOURCE", source).replace("COUNT", str(count))
    outcome = Rejection("CompileGraph", "E_INVALIDARG")
    assert waiving_fault(tmp_path, graph, outcome) == "gather-refused-in-a-graph" * refused


PRODUCT = """
inputs:
  a: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [1, -4]}
  b: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [2, 3, 1, 0.5]}
  c: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [10, 20]}
nodes:
  product:
    operator: GEMM
    desc:
      ATensor: a
      BTensor: b
      OutputTensor: {Sizes: [1, 1, 1, 2]}
      TransA: NONE
      TransB: NONE
      Alpha: 1
      Beta: 1
      FusedActivation: {operator: ACTIVATION_RELU}
  sum: {operator: ELEMENT_WISE_ADD, desc: {ATensor: c, BTensor: product, OutputTensor: {}}}
  last: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: sum, OutputTensor: {}}}
outputs: {y: last}
"""


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ([-8, -21], "sum-before-the-activation-of-a-product-in-a-graph"),
        ([-8, -22], ""),
    ],
)
def test_sum_added_before_an_activation_is_waived(
    tmp_path: Path, values: list[float], name: str
) -> None:
    # The product is [-2, 1]. Right is [-10, -21]; the fault gives -RELU([-2 + 10, 1 + 20]).
    wrong = Outputs({"y": np.array(values, np.float32).reshape(1, 1, 1, 2)})
    assert waiving_fault(tmp_path, PRODUCT, wrong, "1.13.1") == name
    assert waiving_fault(tmp_path, PRODUCT, wrong) == ""


_ONE_PRODUCT = PRODUCT[PRODUCT.index("  product:") : PRODUCT.index("  sum:")]

TWO_PRODUCTS = PRODUCT.replace("[10, 20]", "[-5, 20]").replace(
    "outputs: {y: last}",
    f"""{_ONE_PRODUCT.replace("product:", "other:").rstrip()}
  sums: {{operator: ELEMENT_WISE_ADD, desc: {{ATensor: other, BTensor: last, OutputTensor: {{}}}}}}
outputs: {{y: sums}}""",
)


def test_two_sums_may_both_be_added_before_activations(
    tmp_path: Path,
) -> None:
    # The first sum is RELU([-2 - 5, 1 + 20]) = [0, 21], and the second RELU([-2 - 0, 1 - 21]).
    # If only one of them had the fault, the output would be [0, -20] or [3, 0].
    wrong = Outputs({"y": np.zeros((1, 1, 1, 2), np.float32)})
    name = "sum-before-the-activation-of-a-product-in-a-graph"
    assert waiving_fault(tmp_path, TWO_PRODUCTS, wrong, "1.13.1") == name


COUNTED = PRODUCT.replace("[10, 20]", "[-1, 20]").replace(
    """  last: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: sum, OutputTensor: {}}}
outputs: {y: last}""",
    """  last:
    operator: NONZERO_COORDINATES
    desc:
      InputTensor: sum
      OutputCountTensor: {Sizes: [1, 1, 1, 1], DataType: UINT32}
      OutputCoordinatesTensor: {Sizes: [1, 1, 2, 4], DataType: UINT32}
outputs: {count: last.OutputCountTensor, places: last.OutputCoordinatesTensor}""",
)


@pytest.mark.parametrize(
    ("unwritten", "name"),
    [
        ([4, 5, 6, 7], "sum-before-the-activation-of-a-product-in-a-graph"),
        ([3, 4, 5, 6, 7], ""),
    ],
)
def test_coordinates_of_lost_elements_may_be_unwritten(
    tmp_path: Path, unwritten: list[int], name: str
) -> None:
    """The sum is [-1, 21], and [0, 21] with the fault, which has no second row of coordinates."""
    places = np.array([0, 0, 0, 1, 7, 7, 7, 7], np.uint32).reshape(1, 1, 2, 4)
    fault = Fault(FaultKind.NOT_WRITTEN, "not written", "places", np.array(unwritten))
    wrong = Outputs(
        {"count": np.full((1, 1, 1, 1), 1, np.uint32), "places": places}, faults=(fault,)
    )
    assert waiving_fault(tmp_path, COUNTED, wrong, "1.13.1") == name


COPY = "{operator: ELEMENT_WISE_IDENTITY, desc: {InputTensor: %s, OutputTensor: {}}}"

SLICED = """\
inputs: {{x: {{Sizes: [1, 1, 80, 2], DataType: {type}, values: [{values}]}}}}
nodes:
  n: {{operator: ELEMENT_WISE_NEGATE, desc: {{InputTensor: x, OutputTensor: {{}}}}}}
  s:
    operator: SLICE
    desc: {{InputTensor: n, OutputTensor: {{Sizes: {sizes}}}, Offsets: {offsets},
            Sizes: {sizes}, Strides: {strides}}}
  a: {{operator: ELEMENT_WISE_ABS, desc: {{InputTensor: s, OutputTensor: {{}}}}}}
outputs: {{y: a}}
"""


def sliced(data_type: str, offsets: str, sizes: str, strides: str = "[1, 1, 1, 1]") -> str:
    """Return a graph with a SLICE of 80 rows and 2 columns between two other nodes."""
    values = ", ".join(str(number % 7) for number in range(160))
    return SLICED.format(
        type=data_type, values=values, offsets=offsets, sizes=sizes, strides=strides
    )


@pytest.mark.parametrize(
    ("data_type", "offsets", "sizes", "refused"),
    [
        ("FLOAT32", "[0, 0, 2, 0]", "[1, 1, 3, 2]", True),  # byte 16
        ("FLOAT32", "[0, 0, 3, 0]", "[1, 1, 3, 2]", False),  # byte 24
        ("FLOAT16", "[0, 0, 2, 0]", "[1, 1, 3, 2]", False),  # byte 8
        ("FLOAT16", "[0, 0, 4, 0]", "[1, 1, 3, 2]", True),
        ("INT8", "[0, 0, 4, 0]", "[1, 1, 3, 2]", False),
        ("INT8", "[0, 0, 8, 0]", "[1, 1, 3, 2]", True),
        ("FLOAT32", "[0, 0, 4, 0]", "[1, 1, 1, 1]", True),  # one element
        ("FLOAT32", "[0, 0, 4, 0]", "[1, 1, 2, 1]", False),  # not next to each other
    ],
)
def test_refusal_of_an_aligned_slice_is_waived(
    tmp_path: Path, data_type: str, offsets: str, sizes: str, refused: bool
) -> None:
    graph = sliced(data_type, offsets, sizes)
    outcome = Rejection("CompileGraph", "E_INVALIDARG")
    expected = "slice-of-adjacent-elements-between-nodes" if refused else ""
    assert waiving_fault(tmp_path, graph, outcome) == expected
    assert waiving_fault(tmp_path, graph, outcome, "1.12.1") == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"  n: {NEGATE % 'x'}\n", ""),
        ("{y: a}", "{y: a, z: s}"),
        ("{y: a}", "{y: a, z: n}"),
        (f"  a: {NEGATE % 's'}\noutputs: {{y: a}}", "outputs: {y: s}"),
        ("outputs: {y: a}", f"  b: {NEGATE % 's'}\noutputs: {{y: a, z: b}}"),
        ("outputs: {y: a}", f"  b: {NEGATE % 'n'}\noutputs: {{y: a, z: b}}"),
        (f"n: {NEGATE % 'x'}", f"n: {COPY % 'x'}"),
        (f"a: {NEGATE % 's'}", f"a: {COPY % 's'}"),
        ("NEGATE, desc: {InputTensor: s", "ADD1, desc: {ATensor: s, BTensor: s"),
        (
            "ELEMENT_WISE_NEGATE, desc: {InputTensor: s, OutputTensor: {}",
            "CAST, desc: {InputTensor: s, OutputTensor: {DataType: INT32}",
        ),
    ],
    ids=[
        "slice of an input",
        "slice is an output, too",
        "its input is an output, too",
        "slice is an output alone",
        "slice has two readers",
        "its input has two readers",
        "copy of an input",
        "copied to an output",
        "read twice by a node",
        "read by what does not run in place",
    ],
)
def test_refusal_of_a_slice_that_directml_compiles_is_not_waived(
    tmp_path: Path, old: str, new: str
) -> None:
    """DirectML 1.15.4 compiled each of these graphs, with SLICE and with SLICE1."""
    graph = sliced("FLOAT32", "[0, 0, 2, 0]", "[1, 1, 1, 2]").replace("_ABS", "_NEGATE")
    assert graph.count(old) == 1
    outcome = Rejection("CompileGraph", "E_INVALIDARG")
    for each in (graph, by_window(graph, "[1, 1, 1, 2]")):
        assert waiving_fault(tmp_path, each, outcome) != ""
        changed = each.replace(old, new)
        if "  n: " not in changed:
            changed = changed.replace("InputTensor: n", "InputTensor: x")
        assert waiving_fault(tmp_path, changed, outcome) == ""


@pytest.mark.parametrize(
    ("source", "nodes"),
    [("s", f"  i: {COPY % 's'}\n"), ("n", f"  i: {COPY % 'n'}\n")],
    ids=["behind the slice", "before the slice"],
)
def test_copies_beside_a_slice_are_left_out(tmp_path: Path, source: str, nodes: str) -> None:
    graph = sliced("FLOAT32", "[0, 0, 2, 0]", "[1, 1, 1, 2]")
    copied = graph.replace(f"InputTensor: {source}", "InputTensor: i").replace(
        "outputs", f"{nodes}outputs"
    )
    outcome = Rejection("CompileGraph", "E_INVALIDARG")
    assert waiving_fault(tmp_path, copied, outcome) == "slice-of-adjacent-elements-between-nodes"
    also_an_output = copied.replace("{y: a}", "{y: a, z: i}")
    assert waiving_fault(tmp_path, also_an_output, outcome) == ""


def by_window(graph: str, sizes: str, row: int = 2) -> str:
    window = f"InputWindowOffsets: [0, 0, {row}, 0], InputWindowSizes: {WINDOWS[sizes]}"
    return (
        graph.replace("SLICE", "SLICE1")
        .replace(f"Offsets: [0, 0, {row}, 0],\n            Sizes: {sizes}", window)
        .replace("Strides:", "InputWindowStrides:")
    )


WINDOWS = {"[1, 1, 1, 2]": "[1, 1, 1, 2]", "[1, 1, 2, 2]": "[1, 1, 3, 2]"}
"""The sizes of an output, and of the window that has as many rows at a stride of 2."""


@pytest.mark.parametrize(("sizes", "refused"), [("[1, 1, 1, 2]", True), ("[1, 1, 2, 2]", False)])
def test_refused_row_stride_is_waived_for_one_row(
    tmp_path: Path, sizes: str, refused: bool
) -> None:
    graph = sliced("FLOAT32", "[0, 0, 2, 0]", sizes, "[1, 1, 2, 1]")
    outcome = Rejection("CompileGraph", "E_INVALIDARG")
    expected = "slice-of-adjacent-elements-between-nodes" if refused else ""
    assert waiving_fault(tmp_path, graph, outcome) == expected
    expected = "slice-of-whole-rows-between-nodes" if refused else ""
    assert waiving_fault(tmp_path, by_window(graph, sizes), outcome) == expected


@pytest.mark.parametrize(
    ("scale", "refused"), [("", False), (", ScaleBias: {Scale: 2, Bias: 1}", True)]
)
def test_refusal_of_a_scaled_copy_of_a_slice_is_waived(
    tmp_path: Path, scale: str, refused: bool
) -> None:
    """The row begins at byte 24, where a slice that another node reads is compiled."""
    graph = sliced("FLOAT32", "[0, 0, 3, 0]", "[1, 1, 1, 2]")
    reader = f"ELEMENT_WISE_IDENTITY, desc: {{InputTensor: s, OutputTensor: {{}}{scale}}}"
    graph = graph.replace("ELEMENT_WISE_ABS, desc: {InputTensor: s, OutputTensor: {}}", reader)
    outcome = Rejection("CompileGraph", "E_INVALIDARG")
    expected = "slice-that-a-scaled-copy-reads" if refused else ""
    for each in (graph, by_window(graph, "[1, 1, 1, 2]", 3)):
        assert waiving_fault(tmp_path, each, outcome) == expected
        assert waiving_fault(tmp_path, each, outcome, "1.12.1") == ""


JOINED = """\
inputs: {x: {Sizes: [1, 1, 2, 2], DataType: FLOAT32, values: [1, -2, 3, -4]}}
nodes:
  j: {operator: JOIN, desc: {InputTensors: [x, x], OutputTensor: {Sizes: [1, 2, 2, 2]}, Axis: 1}}
  i:
    operator: ELEMENT_WISE_IDENTITY
    desc: {InputTensor: {from: j, Sizes: %s}, OutputTensor: {}}
  k: {operator: JOIN, desc: {InputTensors: [x, x], OutputTensor: {Sizes: [1, 1, 2, 4]}, Axis: 3}}
  n: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: {from: k, Sizes: [1, 1, 4, 2]},
      OutputTensor: {}}}
  m: {operator: ELEMENT_WISE_NEGATE, desc: {InputTensor: x, OutputTensor: {}}}
outputs: {y: i, z: n, w: m}
"""


@pytest.mark.parametrize(
    ("sizes", "refused"), [("[2, 1, 2, 2]", True), ("[1, 2, 2, 2]", False)], ids=["other", "same"]
)
def test_join_that_an_identity_reads_with_other_sizes_is_waived(
    tmp_path: Path, sizes: str, refused: bool
) -> None:
    """DirectML 1.9.0 is right if the JOIN is read with its own sizes, or by NEGATE."""
    graph = JOINED % sizes
    name = "joined-tensors-that-a-node-reads-with-other-sizes" if refused else ""
    outcome = Rejection("CompileGraph", "E_INVALIDARG")
    assert waiving_fault(tmp_path, graph, outcome, "1.9.0") == name
    name = "joined-tensors-that-are-lost" if refused else ""
    shape = (2, 1, 2, 2) if refused else (1, 2, 2, 2)
    right = {
        "z": np.array([-1, 2, -1, 2, -3, 4, -3, 4], np.float32).reshape(1, 1, 4, 2),
        "w": np.array([-1, 2, -3, 4], np.float32).reshape(1, 1, 2, 2),
    }
    lost = {**right, "y": np.full(shape, 9, np.float32)}
    assert waiving_fault(tmp_path, graph, Outputs(lost), "1.9.0") == name
    for output in right:
        wrong = Outputs({**lost, output: right[output] + 1})
        assert waiving_fault(tmp_path, graph, wrong, "1.9.0") == ""
