"""`dmlconf capture` makes case files from its journal, a file in which it wrote captured calls.

The tested code is in `dmlconf/capture/captured.py`, `dmlconf/capture/case_files.py`,
`dmlconf/capture/dispatch_cases.py`, `dmlconf/capture/shortening.py`, `dmlconf/capture/journal.py`,
`dmlconf/capture/journal_keys.py`, `dmlconf/capture/journal_lines.py`,
`dmlconf/capture/hooking/arrays.py`, `dmlconf/cli/commands/writing/capture.py`,
`dmlconf/cli/options/captured_folder.py`,
`dmlconf/capture/model_runs/onnx_model.py` (`parsed_dimension`) and
`dmlconf/capture/hooking/systems/linux.py`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from dmlconf.backends.recording.file import read_recording
from dmlconf.capture.captured import captured_from
from dmlconf.capture.case_files import write_cases
from dmlconf.capture.dispatch_cases import FOLDER, RECORDING, write_dispatches
from dmlconf.capture.graph_decoding import DecodedGraph
from dmlconf.capture.hooking.arrays import ArrayStore
from dmlconf.capture.journal import JournalError, JournalWriter, read_journal
from dmlconf.capture.journal_lines import graph_line
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.graphs.model import Constant, Graph, InputEdge, IntermediateEdge, Node, OutputEdge
from dmlconf.limits import LARGEST_JOURNAL, LONGEST_JOURNAL_LINE
from dmlconf.tensors.datatypes import Array, DataType
from tests.cli.process import dmlconf_here

TENSOR = {"Sizes": [1, 1, 2, 3], "DataType": "FLOAT32"}
RELU = {"operator": "ACTIVATION_RELU", "desc": {"InputTensor": TENSOR, "OutputTensor": TENSOR}}
CLIP = {**RELU["desc"], "Min": float("-inf"), "Max": 6.0}  # type: ignore[dict-item]

HALF_PRECISION, DESCRIPTORS_VOLATILE = 1, 4
"""Values of DML_EXECUTION_FLAGS."""

GRAPH: dict[str, Any] = {
    "graph": {
        "inputs": {"input-0": TENSOR},
        "nodes": {
            "relu": {
                "operator": "ACTIVATION_RELU",
                "desc": {"InputTensor": {"from": "input-0", **TENSOR}, "OutputTensor": TENSOR},
            },
            "clip": {
                "operator": "ELEMENT_WISE_CLIP",
                "desc": {**CLIP, "InputTensor": {"from": "relu", **TENSOR}},
            },
        },
        "outputs": {"output-0": "clip"},
    },
    "names": {"relu": "/layer/relu"},
    "unused": 1,
    "flags": DESCRIPTORS_VOLATILE,
}
"""A compiled graph of two nodes, with one more input that no node reads."""

ONE_NODE = {
    **GRAPH,
    "graph": {
        **GRAPH["graph"],
        "nodes": {"relu": GRAPH["graph"]["nodes"]["relu"]},
        "outputs": {"output-0": "relu"},
    },
    "unused": 0,
}
"""The graph of the node `relu` alone."""


def journal(path: Path, *lines: dict[str, Any]) -> Path:
    writer = JournalWriter(path)
    for line in lines:
        writer.write(line)
    writer.close()
    return path


def inside(line: Any, place: Sequence[str]) -> Any:
    """Return the object at a place in a line; one without keys if there is none."""
    for key in place:
        line = (line or {}).get(key) or {}
    return line


def test_a_full_journal_does_not_grow(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with path.open("wb") as file:
        file.truncate(LARGEST_JOURNAL)
    journal(path, {"event": "device"})
    assert path.stat().st_size == LARGEST_JOURNAL


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on the size of files")
def test_line_that_does_not_fit_on_the_disk_damages_no_later_line(tmp_path: Path) -> None:
    import resource

    lines = [{"event": "device"}, {"event": "failure", "reason": "x" * 1000}, {"event": "device"}]
    path = journal(tmp_path / "journal", lines[0])
    writer = JournalWriter(path)
    _, hard = limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        with pytest.raises(OSError, match="No space left"):
            writer.write(lines[1])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    writer.write(lines[2])
    writer.close()
    assert list(read_journal(path)) == [lines[0], lines[2]]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows can capture")
@pytest.mark.parametrize("interpreter", [(), ("python",), ("/usr/bin/python3.12",), ("Py.exe",)])
def test_capturing_is_refused_without_directml(
    tmp_path: Path, interpreter: tuple[str, ...]
) -> None:
    (tmp_path / "app.py").write_text("open('ran', 'w')", encoding="utf-8")
    done = dmlconf_here(tmp_path, "capture", "--", *interpreter, "app.py", "--x")
    assert done.returncode == 4
    assert "cannot capture programs on this system: capture works on Windows" in done.stderr
    if sys.platform == "linux":
        assert "has no libd3d12.so, which Windows puts there in WSL 2" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_compiled_operators_graphs_and_nodes_become_cases(
    tmp_path: Path,
) -> None:
    path = journal(
        tmp_path / "journal",
        {"event": "device"},
        {"event": "created", "operator": "ACTIVATION_RELU"},
        {"event": "compile", "number": 1, **RELU, "flags": HALF_PRECISION},
        {"event": "compiled", "number": 1, "hresult": "S_OK"},
        {"event": "compile", "number": 1},
        {"event": "compiled", "number": 1, "hresult": "S_OK"},
        {"event": "compile", "number": 2, **GRAPH},
        {"event": "compiled", "number": 2, "hresult": "E_FAIL"},
        {"event": "compile", "number": 2},
        {"event": "compiled", "number": 2, "hresult": "E_FAIL"},
        {"event": "compile", "number": 3, **ONE_NODE},
        {"event": "compiled", "number": 3, "hresult": "S_OK"},
        {"event": "skipped", "what": "graph", "reason": "unknown"},
        {"event": "of a later version"},
    )
    captured = captured_from(read_journal(path))
    assert captured.summary() == "2 graphs of 3 nodes and 1 operator of their own"
    assert captured.skipped == {"graph: unknown": 1}
    written = write_cases(tmp_path / "cases", captured)
    assert written.left_out == {}
    cases = {c.identifier: c for c in map(valid_case, load_suite([tmp_path / "cases"]).plan())}
    assert cases.keys() == {
        "activation_relu/captured/float32-1x1x2x3",
        "activation_relu/captured/float32-1x1x2x3-2",
        "element_wise_clip/captured/float32-1x1x2x3",
        "graphs/captured/graph-1-of-2-nodes",
        "graphs/captured/graph-2-of-1-node",
    }
    relu = cases["activation_relu/captured/float32-1x1x2x3"]
    assert relu.about.note == "Compiled 2 times."
    assert {"captured", "half-precision"} <= set(relu.tags)
    node = cases["activation_relu/captured/float32-1x1x2x3-2"]
    assert node.about.note == "2 nodes of 2 graphs: /layer/relu."
    assert cases["element_wise_clip/captured/float32-1x1x2x3"].desc["Min"] == float("-inf")
    graph = cases["graphs/captured/graph-1-of-2-nodes"]
    assert isinstance(graph, GraphCase)
    assert graph.about.note == (
        "Compiled 2 times, and refused with E_FAIL. "
        "The application's graph has 1 more input, unread."
    )
    assert "descriptors-volatile" in graph.tags
    assert [node.name for node in graph.graph.nodes] == ["relu", "clip"]


def test_captured_weights_become_the_data_of_their_inputs(tmp_path: Path) -> None:
    weights = np.arange(6, dtype=np.float32).reshape(1, 1, 2, 3)
    kept = ArrayStore(tmp_path, 100).put(weights)
    owned = {**TENSOR, "Flags": ["OWNED_BY_DML"]}
    parts = {**GRAPH["graph"], "inputs": {"input-0": owned}}
    relu = {**RELU, "desc": {"InputTensor": owned, "OutputTensor": TENSOR}}
    path = journal(
        tmp_path / "journal",
        {"event": "compile", "number": 1, **relu, "flags": 0},
        {"event": "weights", "number": 1, "inputs": {"InputTensor": kept}},
        {"event": "compile", "number": 2, **GRAPH, "graph": parts},
        {"event": "weights", "number": 2, "inputs": {"input-0": kept}},
    )
    write_cases(tmp_path / "cases", captured_from(read_journal(path)), tmp_path)
    cases = {c.identifier: c for c in map(valid_case, load_suite([tmp_path / "cases"]).plan())}
    own = cases["activation_relu/captured/float32-1x1x2x3"].inputs()["InputTensor"]
    np.testing.assert_array_equal(own, weights)
    graph = cases["graphs/captured/graph-1-of-2-nodes"]
    np.testing.assert_array_equal(graph.inputs()["input-0"], weights)
    # As a case of its own, a node of the graph has generated data.
    node = cases["activation_relu/captured/float32-1x1x2x3-2"].inputs()["InputTensor"]
    assert not np.array_equal(node, weights)


def test_a_broadcast_constant_is_written_as_one_number(tmp_path: Path) -> None:
    many = TensorDesc(DataType.FLOAT32, (1, 1, 400, 500), (0, 0, 0, 0))
    output = TensorDesc(DataType.FLOAT32, (1, 1, 400, 500))
    add = {"ATensor": many, "BTensor": output, "OutputTensor": output}
    graph = Graph(
        inputs={"x": output},
        outputs={"y": output},
        nodes=(
            Constant("half", many, np.full(many.Sizes, 0.5, np.float32)),
            Node("add", "ELEMENT_WISE_ADD", add),
        ),
        input_edges=(InputEdge("x", "add", "BTensor"),),
        intermediate_edges=(IntermediateEdge("half", "OutputTensor", "add", "ATensor"),),
        output_edges=(OutputEdge("add", "OutputTensor", "y"),),
    )
    _, line = graph_line(DecodedGraph(graph, {}, (0,), 0), 0)
    path = journal(tmp_path / "journal", {"event": "compile", "number": 1, **line})
    assert path.stat().st_size < 2000
    written = write_cases(tmp_path / "cases", captured_from(read_journal(path)))
    assert written.left_out == {}
    [case] = map(valid_case, load_suite([tmp_path / "cases" / "graphs"]).plan())
    assert isinstance(case, GraphCase)
    [constant] = case.graph.constants
    assert (constant.data == np.float32(0.5)).all()
    assert constant.data.shape == many.Sizes


def test_case_files_leave_out_inferred_sizes_and_types(
    tmp_path: Path,
) -> None:
    path = journal(tmp_path / "journal", {"event": "compile", "number": 1, **GRAPH})
    write_cases(tmp_path / "cases", captured_from(read_journal(path)))
    text = (tmp_path / "cases/graphs/captured.yaml").read_text("utf-8")
    nodes = yaml.safe_load(text)["cases"][0]["nodes"]
    assert nodes["relu"]["desc"] == {"InputTensor": "input-0", "OutputTensor": {}}
    assert nodes["clip"]["desc"]["InputTensor"] == "relu"


def test_a_case_breaking_a_constraint_is_left_out(tmp_path: Path) -> None:
    wrong = {**RELU["desc"], "OutputTensor": {**TENSOR, "Sizes": [7]}}  # type: ignore[dict-item]
    path = journal(
        tmp_path / "journal",
        {"event": "compile", "number": 1, **RELU, "flags": 0},
        {"event": "compile", "number": 2, "operator": RELU["operator"], "desc": wrong, "flags": 0},
    )
    written = write_cases(tmp_path / "cases", captured_from(read_journal(path)))
    assert written.cases == 1
    [(name, problem)] = written.left_out.items()
    assert name == "activation_relu/captured/float32-7"
    assert "breaks" in problem


def dispatch(number: int, store: ArrayStore, before: Array, after: Array) -> dict[str, Any]:
    """Return the event of a dispatch of the operator compiled as `number`, with its data."""
    inputs, outputs = {"InputTensor": store.put(before)}, {"OutputTensor": store.put(after)}
    return {"event": "dispatch", "number": number, "inputs": inputs, "outputs": outputs}


def test_each_dispatch_becomes_a_case(
    tmp_path: Path,
) -> None:
    store = ArrayStore(tmp_path, 1 << 20)
    ordinary = np.array([[[[-1, 2, 3], [4, -5, 6]]]], np.float32)
    right = np.maximum(ordinary, 0)
    wrong = np.array([[[[0, 2, 3], [4, 0, np.inf]]]], np.float32)
    path = journal(
        tmp_path / "journal",
        {"event": "compile", "number": 1, **RELU, "flags": 0},
        dispatch(1, store, ordinary, right),
        dispatch(1, store, ordinary, wrong),
        dispatch(1, store, wrong, wrong),
    )
    written = write_dispatches(tmp_path / "out", captured_from(read_journal(path)), tmp_path)
    assert written.left_out == {}
    names = [file.name for file in written.files]
    assert names == [f"{n:05}-activation-relu.yaml" for n in (1, 2, 3)]
    cases = [valid_case(each) for each in load_suite([tmp_path / "out"]).plan()]
    # A case whose input holds a NaN or an infinity has the tag `follower`.
    assert [("follower" in case.tags) for case in cases] == [False, False, True]
    assert cases[2].about.note == (
        "Dispatch 3. Its input InputTensor already holds a NaN or an infinity, which dispatch 2 "
        "wrote."
    )
    folder = "out/dispatches"
    done = dmlconf_here(tmp_path, "run", folder, "-b", f"recording:{folder}")
    assert done.returncode == 1
    assert "FAILED activation_relu/00002-activation-relu/dispatch-2" in done.stdout
    assert "1 failed); 2 passed" in done.stdout


def test_the_recording_names_the_applications_directml(
    tmp_path: Path,
) -> None:
    library = tmp_path / "DirectML.dll"
    library.write_bytes(b"DirectML/1.15.4")  # Some real libraries contain such text.
    ones = np.ones((1, 1, 2, 3), np.float32)
    path = journal(
        tmp_path / "journal",
        {"event": "device", "library": str(library)},
        {"event": "compile", "number": 1, **RELU, "flags": 0},
        dispatch(1, ArrayStore(tmp_path, 1 << 20), ones, ones),
    )
    write_dispatches(tmp_path / "out", captured_from(read_journal(path)), tmp_path)
    environment = read_recording(tmp_path / "out" / FOLDER / RECORDING).environment
    assert environment["version"] == "1.15.4"
    assert environment["details"]["directml_file"] == str(library)


@pytest.mark.parametrize(("flags", "status"), [(0, "1 failed"), (HALF_PRECISION, "1 passed")])
def test_a_float16_sum_needs_the_half_precision_flag(
    tmp_path: Path, flags: int, status: str
) -> None:
    """In FLOAT16, 2048 + 1 rounds to 2048, so a FLOAT16 sum of 4,096 ones may be 2048."""
    sizes = {"ATensor": (1, 1, 1, 4096), "BTensor": (1, 1, 4096, 1), "OutputTensor": (1, 1, 1, 1)}
    desc = {name: {"Sizes": [*size], "DataType": "FLOAT16"} for name, size in sizes.items()}
    gemm = {"TransA": "NONE", "TransB": "NONE", "Alpha": 1.0, "Beta": 0.0}
    store = ArrayStore(tmp_path, 1 << 20)
    arrays = {name: store.put(np.ones(size, np.float16)) for name, size in sizes.items()}
    output = {"OutputTensor": store.put(np.full((1, 1, 1, 1), 2048, np.float16))}
    inputs = {name: arrays[name] for name in ("ATensor", "BTensor")}
    path = journal(
        tmp_path / "journal",
        {"event": "compile", "number": 1, "operator": "GEMM", "desc": desc | gemm, "flags": flags},
        {"event": "dispatch", "number": 1, "inputs": inputs, "outputs": output},
    )
    write_dispatches(tmp_path / "out", captured_from(read_journal(path)), tmp_path)
    folder = "out/dispatches"
    done = dmlconf_here(tmp_path, "run", folder, "-b", f"recording:{folder}")
    assert status in done.stdout


def test_arrays_are_stored_once_up_to_a_limit(tmp_path: Path) -> None:
    store = ArrayStore(tmp_path, 32)  # Room for two arrays of 16 bytes.
    first = store.put(np.zeros(4, np.float32))
    assert store.put(np.zeros(4, np.float32)) == first
    assert store.put(np.zeros((2, 2), np.float32)) != first
    assert len(list(tmp_path.glob("*.npy"))) == 2
    assert store.put(np.ones(4, np.float32)) is None


def test_an_array_outside_of_the_journals_folder_is_refused(tmp_path: Path) -> None:
    outside = {"file": "../secret.npy", "elements": "", "finite": True}
    path = journal(
        tmp_path / "journal",
        {"event": "compile", "number": 1, **RELU, "flags": 0},
        {"event": "dispatch", "number": 1, "inputs": {"InputTensor": outside}, "outputs": {}},
    )
    with pytest.raises(JournalError) as refused:
        captured_from(read_journal(path))
    assert str(refused.value) == (
        f"{path}, line 2: the file of its tensor 'InputTensor' is '../secret.npy', but names are "
        "32 digits of 0-9 and a-f with the suffix .npy; the journal is damaged, so capture the "
        "program again"
    )


def test_an_operator_whose_desc_is_too_long_is_reported(tmp_path: Path) -> None:
    long = {**RELU, "desc": {"InputTensor": "x" * LONGEST_JOURNAL_LINE}}
    path = journal(
        tmp_path / "journal",
        {"event": "compile", "number": 1, **long, "flags": 0},
        {"event": "compiled", "number": 1, "hresult": "S_OK"},
        {"event": "compile", "number": 1},
        {"event": "compile", "number": 2, **RELU, "flags": 0},
    )
    captured = captured_from(read_journal(path))
    assert [each.compiled for each in captured.operators] == [1]
    [reason] = captured.skipped
    assert reason.startswith("compile: it takes 16,777,")  # The limit is 2^24 = 16,777,216.


def test_a_last_line_that_was_cut_off_is_ignored(tmp_path: Path) -> None:
    path = journal(tmp_path / "journal", {"event": "device"}, {"event": "device"})
    path.write_bytes(path.read_bytes()[:-3])
    assert captured_from(read_journal(path)).devices == 1


@pytest.mark.parametrize("line", ["[1]", "{", "1e999"])
def test_a_damaged_journal_is_reported(tmp_path: Path, line: str) -> None:
    path = tmp_path / "journal"
    path.write_text(json.dumps({"event": "device"}) + f"\n{line}\n", encoding="utf-8")
    with pytest.raises(JournalError, match=r"line 2: .* capture the program again"):
        list(read_journal(path))


KEPT = {"file": f"{0:032x}.npy", "elements": "", "finite": True}
NUMBERS = {"low": 0, "high": 1, "zeros": 0, "whole": True, "count": 2}
"""A kept array as a line of the journal has it, and the statistics of one."""

LINES: list[dict[str, Any]] = [
    {"event": "created", "operator": "ACTIVATION_RELU"},
    {"event": "refused", "type": 1, "hresult": "E_INVALIDARG"},
    {"event": "skipped", "what": "operator", "reason": "unknown"},
    {"event": "failure", "reason": "unknown"},
    {"event": "compile", "number": 1, **RELU, "flags": 0},
    {"event": "compiled", "number": 1, "hresult": "S_OK"},
    {"event": "weights", "number": 1, "inputs": {"InputTensor": KEPT}},
    {"event": "statistics", "number": 1, "inputs": {"InputTensor": {"statistics": NUMBERS}}},
    {"event": "dispatch", "number": 1, "inputs": {"InputTensor": KEPT}, "outputs": {"Out": KEPT}},
    {"event": "compile", "number": 2, **GRAPH},
]
"""A line of each event that needs keys."""

LEFT_OUT = [
    (number, (*place, key))
    for number, line in enumerate(LINES)
    for place in [
        (),
        ("inputs", "InputTensor"),
        ("inputs", "InputTensor", "statistics"),
        ("outputs", "Out"),
        ("graph",),
        ("graph", "nodes", "relu"),
    ]
    for key in inside(line, place)
    if key != "event" and (number, place, key) not in [(4, (), "operator"), (9, (), "graph")]
    if (place, key) != (("graph",), "inputs")
]
"""The number of a line in `LINES`, and a key that it needs. An event `compile` without operator or
graph has described it before, and a graph needs no inputs.
"""


@pytest.mark.parametrize(("number", "left_out"), LEFT_OUT)
def test_a_line_without_a_key_is_refused_with_the_key(
    tmp_path: Path, number: int, left_out: tuple[str, ...]
) -> None:
    line = deepcopy(LINES[number])
    *place, key = left_out
    del inside(line, place)[key]
    path = journal(tmp_path / "journal", {"event": "device"}, *LINES[:number], line)
    with pytest.raises(JournalError) as refused:
        captured_from(read_journal(path))
    start = f"{path}, line {number + 2}: "
    message = str(refused.value)
    assert message.startswith(start)
    assert f"lacks the key {key!r}; the journal is damaged, so capture" in message


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"event": "compile", "number": "1"}, "'number' of the event 'compile' is not an integer"),
        ({"event": "weights", "number": 1, "inputs": []}, "'inputs' .* is not an object"),
        ({"event": "weights", "number": 1, "inputs": {"x": 1}}, "its tensor 'x' is not an object"),
    ],
)
def test_a_line_with_a_value_of_another_kind_is_refused(
    tmp_path: Path, line: dict[str, Any], message: str
) -> None:
    with pytest.raises(JournalError, match=f"line 1: .*{message}; the journal is damaged"):
        captured_from(read_journal(journal(tmp_path / "journal", line)))


def test_a_journal_with_a_line_of_each_event_is_read(tmp_path: Path) -> None:
    captured = captured_from(read_journal(journal(tmp_path / "journal", *LINES)))
    assert len(captured.dispatches) == len(captured.graphs) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name a PROGRAM after --, or an ONNX model with --model"),
        (("--model", "net.onnx", "--", "app.py"), "name a PROGRAM or a --model, not both"),
        (("--model", "net.onnx", "--dimension", "batch"), "'batch' is not a dimension"),
        (("--unfused", "--", "app.py"), "go with --model"),
        (("--", "other.py"), "there is no script other.py"),
        (("--", "-m"), "name a module after -m"),
        (("--dispatches", "2", "--", "app.py"), "--dispatches goes with --data all"),
        (("--most-data", "2", "--", "app.py"), "--most-data goes with --data weights or all"),
        (("-o", "app.py/below", "--", "app.py"), "-o app.py/below: Not a directory"),
        (("--", "python"), "name a PROGRAM after --, or an ONNX model with --model"),
        (("-o", "full", "--", "app.py"), "-o full: the folder holds files already"),
    ],
)
def test_wrong_options_of_capture_are_refused(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    for name in ("app.py", "net.onnx", "full/file"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    done = dmlconf_here(tmp_path, "capture", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
