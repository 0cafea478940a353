"""A captured graph is split into blocks of a few connected nodes, and each block becomes a case.

A block's inputs were captured, or are computed from captured tensors.

The tested code is in `dmlconf/capture/block_cases.py` and `dmlconf/capture/blocks.py`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from dmlconf.capture.block_cases import write_blocks
from dmlconf.capture.captured import Captured, captured_from
from dmlconf.capture.case_files import Written
from dmlconf.capture.dispatch_cases import write_dispatches
from dmlconf.capture.hooking.arrays import ArrayStore
from dmlconf.capture.journal import read_journal
from dmlconf.cases.graph_case import GraphCase
from dmlconf.cases.loading.loader import load_suite, valid_case
from tests.cli.commands.test_capture import GRAPH, RELU, journal

X = np.array([[[[-1, 2, 3], [4, -5, 9]]]], np.float32)

MEGABYTE = 1 << 20
"""More than the data of all blocks."""


def captured_dispatches(folder: Path) -> Captured:
    """Return a capture with a dispatch of ReLU, and one of a graph of ReLU and a clip."""
    store = ArrayStore(folder, MEGABYTE)
    before, after = store.put(X), store.put(np.clip(X, 0, 6))
    graph_data = {"inputs": {"input-0": before}, "outputs": {"output-0": after}}
    operator_data = {"inputs": {"InputTensor": before}, "outputs": {"OutputTensor": after}}
    path = journal(
        folder / "journal",
        {"event": "compile", "number": 1, **RELU, "flags": 0},
        {"event": "compile", "number": 2, **GRAPH},
        {"event": "dispatch", "number": 1, **operator_data},
        {"event": "dispatch", "number": 2, **graph_data},
    )
    return captured_from(read_journal(path))


def blocks(folder: Path, most_nodes: int, most_bytes: int) -> Written:
    captured = captured_dispatches(folder)
    write_dispatches(folder / "out", captured, folder)
    return write_blocks(folder / "out", captured, most_nodes, most_bytes)


def test_inputs_of_a_block_are_captured_or_computed(tmp_path: Path) -> None:
    written = blocks(tmp_path, 1, MEGABYTE)
    assert written.left_out == {}
    [path] = written.files
    assert path == tmp_path / "out" / "blocks" / "00002-graph.yaml"
    first, second = (valid_case(each) for each in load_suite([path.parent]).plan())
    np.testing.assert_array_equal(first.inputs()["input-0"], X)
    np.testing.assert_array_equal(second.inputs()["relu"], np.maximum(X, 0))
    assert isinstance(first, GraphCase)
    assert [node.operator_name for node in first.graph.operator_nodes] == ["ACTIVATION_RELU"]
    assert first.about.note == "Dispatch 2: The node /layer/relu of graph 1."
    assert {"block", "captured", "descriptors-volatile"} <= set(first.tags)


def test_graph_no_larger_than_a_block_is_not_split(tmp_path: Path) -> None:
    assert blocks(tmp_path, 2, MEGABYTE) == Written((), 0, {})
    assert not (tmp_path / "out" / "blocks").exists()


def test_blocks_whose_data_exceeds_the_limit_are_left_out(tmp_path: Path) -> None:
    # Only the data of the first block fits.
    written = blocks(tmp_path, 1, X.nbytes)
    assert written.cases == 1
    assert written.left_out == {
        "blocks/dispatch-2-block-2": "its data is larger than the limit of --most-data"
    }
