"""Write the blocks of dispatched graphs as cases with the application's data.

Where a block reads a tensor of another block, its case has the reference's values: capturing does
not see what DirectML computes inside a graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from dmlconf.capture.blocks import Block, blocks
from dmlconf.capture.captured import Captured, CapturedGraph
from dmlconf.capture.case_files import (
    DATA,
    Entry,
    Written,
    block_span,
    execution_tags,
    sound_entries,
)
from dmlconf.capture.dispatch_cases import FOLDER as DISPATCHES
from dmlconf.capture.dispatch_cases import file_stem
from dmlconf.capture.hooking.arrays import ArrayStore
from dmlconf.capture.shortening import shortened
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.selecting.selection import CAPTURED_TAG
from dmlconf.cases.writing.document_text import document_text
from dmlconf.documents.whole_files import write_whole
from dmlconf.graphs.model import CONSTANT_TENSOR
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.graph_evaluation import evaluate_nodes
from dmlconf.tensors.datatypes import Array

__all__ = ["FOLDER", "write_blocks"]

FOLDER: Final = "blocks"
"""The name of the folder of blocks, below the folder of captured cases."""


def write_blocks(folder: Path, captured: Captured, most_nodes: int, most_bytes: int) -> Written:
    """Write a case file with the blocks of each dispatched graph whose data was kept.

    Graphs of at most `most_nodes` nodes are not split.

    Args:
        folder: the folder of captured cases; only dispatches with a case file there have blocks.
        most_nodes: the most nodes of a block.
        most_bytes: the most bytes of all data; blocks whose data does not fit are left out.

    Raises:
        OSError: a file cannot be read or written.
    """
    target = folder / FOLDER
    store: ArrayStore | None = None
    files: list[Path] = []
    left_out: dict[str, str] = {}
    cases = 0
    for number, dispatch in enumerate(captured.dispatches, 1):
        graph = dispatch.what
        stem = file_stem(number, graph)
        source = folder / DISPATCHES / f"{stem}.yaml"
        if (
            not isinstance(graph, CapturedGraph)
            or len(graph.parts["nodes"]) <= most_nodes
            or not source.exists()
        ):
            continue
        if store is None:
            (target / DATA).mkdir(parents=True, exist_ok=True)
            store = ArrayStore(target / DATA, most_bytes)
        path = target / f"{stem}.yaml"
        head = {"graph": f"blocks of graph {graph.number}", "tags": [CAPTURED_TAG]}
        found = list(_entries(graph, number, _values(source), most_nodes, store, left_out))
        entries = sound_entries(head, found, path, left_out)
        if entries:
            write_whole(path, document_text({**head, "cases": entries}))
            files.append(path)
            cases += len(entries)
    return Written(tuple(files), cases, left_out)


def _values(path: Path) -> Mapping[str, Array]:
    """Return the inputs of the graph in a file by name, and nodes' outputs by `NODE.TENSOR`.

    `NODE` alone stands for its OutputTensor.
    """
    [planned] = load_suite([path]).plan()
    case = valid_case(planned)
    values = dict(case.inputs())
    for (node, tensor), array in evaluate_nodes(case, evaluate).outputs.items():
        values[f"{node}.{tensor}"] = array
        if tensor == CONSTANT_TENSOR:
            values[node] = array
    return values


def _entries(
    graph: CapturedGraph,
    number: int,
    values: Mapping[str, Array],
    most_nodes: int,
    store: ArrayStore,
    left_out: dict[str, str],
) -> Iterator[Entry]:
    for index, block in enumerate(blocks(graph.parts, most_nodes), 1):
        name = f"dispatch-{number}-block-{index}"
        parts = _with_values(block, values, store)
        if parts is None:
            left_out[f"{FOLDER}/{name}"] = "its data is larger than the limit of --most-data"
            continue
        yield {
            "name": name,
            "note": f"Dispatch {number}: {block_span(graph, block)}",
            "tags": ["block", *execution_tags(graph.flags)],
            **shortened(parts),
        }


def _with_values(
    block: Block, values: Mapping[str, Array], store: ArrayStore
) -> Mapping[str, Any] | None:
    """Return a block's parts with the data of its inputs; None if the data does not fit."""
    inputs: dict[str, Any] = {}
    for name, tensor in block.parts.get("inputs", {}).items():
        kept = store.put(values[block.sources[name]])
        if kept is None:
            return None
        inputs[name] = {**tensor, "values": {"file": f"{DATA}/{kept['file']}"}}
    return {**block.parts, "inputs": inputs} if inputs else block.parts
