"""Write captured operators and graphs as case files, and leave out what does not load."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dmlconf.backends.directml.dispatch.case_flags import FLAG_TAGS
from dmlconf.capture.blocks import Block, blocks
from dmlconf.capture.captured import Captured, CapturedGraph, CapturedOperator, KeptArray
from dmlconf.capture.data_statistics import DataStatistics, following
from dmlconf.capture.inputs import desc_of, input_data
from dmlconf.capture.shortening import OWN_DATA, shortened
from dmlconf.cases.identifiers import unique_name
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.selecting.selection import CAPTURED_TAG
from dmlconf.cases.writing.document_text import document_text
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import tensors_of
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.model import FieldKind
from dmlconf.documents.problems import InvalidFilesError, Problem
from dmlconf.documents.whole_files import write_whole
from dmlconf.documents.wording import first_names

__all__ = [
    "DATA",
    "FILE",
    "Entry",
    "File",
    "Written",
    "block_span",
    "execution_tags",
    "operator_entries",
    "sound_entries",
    "with_data",
    "write_cases",
    "written",
]

FILE: Final = "captured"
"""The stem of files of operators and graphs; further files of graphs are `captured-2` and so on."""

DATA: Final = "data"
"""The name of the folder of kept data, next to case files."""

_MOST_TEXT: Final = 1 << 20
"""The most characters of the entries in a file of graphs, unless it has a single entry."""

_MOST_NAMED: Final = 3
"""How many nodes a note names."""


@dataclass(frozen=True, slots=True)
class Written:
    """The case files that were written.

    Attributes:
        cases: how many cases the files have.
        left_out: why a case was not written, by `FOLDER/STEM/NAME`, or by `FOLDER/NAME` if its data
            was too large.
    """

    files: tuple[Path, ...]
    cases: int
    left_out: Mapping[str, str]


Entry = Mapping[str, Any]
"""An entry of a case file, or the file's head: what the file says of all its entries."""

File = tuple[Path, Entry, list[Entry]]
"""The path of a case file, its head, and its entries."""


def write_cases(
    folder: Path, captured: Captured, source: Path | None = None, block_nodes: int | None = None
) -> Written:
    """Write case files below a folder: one for each operator, and others for graphs.

    Cases that `dmlconf run` could not load are left out.

    Args:
        folder: the folder for the files; weights go to folders `data` next to them.
        source: the folder of the kept weights; None if there are none.
        block_nodes: the most nodes of a block. Graphs with more nodes are also written as blocks
            of several nodes. None for no blocks.

    Raises:
        OSError: a file cannot be written, or kept weights cannot be read.
    """

    def with_weights() -> Iterator[File]:
        for path, head, entries, weights in _files(folder, captured, block_nodes):
            if source is not None:
                _copy(weights, source, path.parent / DATA)
            yield path, head, entries

    return written(with_weights())


def written(files: Iterable[File]) -> Written:
    """Write case files with the entries that load; files without any are not written.

    Raises:
        OSError: a file cannot be written.
    """
    paths: list[Path] = []
    left_out: dict[str, str] = {}
    cases = 0
    for path, head, entries in files:
        sound = sound_entries(head, entries, path, left_out)
        if sound:
            write_whole(path, document_text({**head, "cases": sound}))
            paths.append(path)
            cases += len(sound)
    return Written(tuple(paths), cases, left_out)


def _copy(names: Collection[str], source: Path, target: Path) -> None:
    for name in names:
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, target / name)


def _files(
    folder: Path, captured: Captured, block_nodes: int | None
) -> Iterator[tuple[Path, Entry, list[Entry], Collection[str]]]:
    """Yield each file's path, head and entries, and the weights that they name."""
    by_operator: dict[str, list[CapturedOperator]] = {}
    for operator in captured.operators:
        by_operator.setdefault(operator.operator, []).append(operator)
    for name, members in sorted(by_operator.items()):
        entries = list(operator_entries(name, members, _operator_note))
        weights = {kept.file for member in members for kept in member.weights.values()}
        path = folder / name.lower() / f"{FILE}.yaml"
        yield path, {"operator": name, "tags": [CAPTURED_TAG]}, entries, weights
    waiting: list[Entry] = []
    named: set[str] = set()
    size, number = 0, 0
    head = {"graph": "captured from an application", "tags": [CAPTURED_TAG]}

    def file() -> Path:
        suffix = f"-{number}" if number > 1 else ""
        return folder / GRAPHS.lower() / f"{FILE}{suffix}.yaml"

    for graph, entry in _graph_entries(captured.graphs, block_nodes):
        length = len(document_text(entry))
        if waiting and size + length > _MOST_TEXT:
            number += 1
            yield file(), head, waiting, named
            waiting, size, named = [], 0, set()
        waiting.append(entry)
        named |= {kept.file for kept in graph.weights.values()}
        size += length
    if waiting:
        number += 1
        yield file(), head, waiting, named


def operator_entries(
    name: str, members: Sequence[CapturedOperator], note: Callable[[CapturedOperator], str]
) -> Iterator[Entry]:
    """Yield a case file's entry for each member; inputs have kept weights or generated data.

    Args:
        members: the operator with each of its descs and flags.
        note: returns the note of an entry.
    """
    operator = catalogue.operator(name)
    used: set[str] = set()
    seed = 0
    for member in members:
        desc = desc_of(operator, member.desc)
        written = dict(member.desc)
        for tensor_name, field, tensor in tensors_of(operator, desc, FieldKind.INPUT):
            seed += 1
            data = _weight(member.weights, tensor_name) or following(
                member.statistics.get(tensor_name),
                input_data(operator, desc, field, tensor, seed),
                seed,
            )
            if field.is_array:
                index = int(tensor_name[len(field.name) + 1 : -1])
                items = list(written[field.name])
                items[index] = {**items[index], **data}
                written[field.name] = items
            else:
                written[field.name] = {**written[field.name], **data}
        output = next(tensors_of(operator, desc, FieldKind.OUTPUT))[2]
        sizes = "x".join(map(str, output.Sizes))
        entry = {
            "name": unique_name(f"{str(output.DataType).lower()}-{sizes}", used),
            "note": note(member),
            **_tags(member.flags),
            "desc": written,
        }
        yield entry


def _operator_note(member: CapturedOperator) -> str:
    parts = []
    if member.compiled:
        parts.append(f"Compiled {_times(member.compiled)}{_outcome(member.hresult)}.")
    if member.nodes:
        graphs = sorted({graph for graph, _ in member.nodes})
        names = list(dict.fromkeys(name for _, name in member.nodes))
        where = f"graph {graphs[0]}" if len(graphs) == 1 else f"{len(graphs)} graphs"
        count = "A node" if len(member.nodes) == 1 else f"{len(member.nodes):,} nodes"
        parts.append(f"{count} of {where}: {first_names(names, _MOST_NAMED)}.")
    return " ".join(parts)


def _graph_entries(
    graphs: Sequence[CapturedGraph], block_nodes: int | None
) -> Iterator[tuple[CapturedGraph, Entry]]:
    for graph in graphs:
        yield graph, _graph_entry(graph)
        if block_nodes is None or len(graph.parts["nodes"]) <= block_nodes:
            continue
        # A block of one node is a case of its operator already.
        several = [each for each in blocks(graph.parts, block_nodes) if len(each.nodes) > 1]
        for number, block in enumerate(several, 1):
            sources = block.sources.items()
            weights = {n: graph.weights[s] for n, s in sources if s in graph.weights}
            statistics = {n: graph.statistics[s] for n, s in sources if s in graph.statistics}
            yield (
                graph,
                {
                    "name": f"graph-{graph.number}-block-{number}",
                    "note": block_span(graph, block),
                    "tags": ["block", *execution_tags(graph.flags)],
                    **shortened(_with_kept_data(block.parts, weights, statistics)),
                },
            )


def block_span(graph: CapturedGraph, block: Block) -> str:
    """Return a sentence that names a block's first and last node, or its only one."""
    first, last = (graph.names.get(name, name) for name in (block.nodes[0], block.nodes[-1]))
    count = len(block.nodes)
    if count == 1:
        return f"The node {first} of graph {graph.number}."
    return f"{count} nodes of graph {graph.number}, from {first} to {last}."


def _graph_entry(graph: CapturedGraph) -> Entry:
    count = len(graph.parts["nodes"])
    parts = [f"Compiled {_times(graph.compiled)}{_outcome(graph.hresult)}."]
    if graph.unused:
        plural = "s" if graph.unused > 1 else ""
        parts.append(f"The application's graph has {graph.unused} more input{plural}, unread.")
    return {
        "name": f"graph-{graph.number}-of-{count}-node{'' if count == 1 else 's'}",
        "note": " ".join(parts),
        **_tags(graph.flags),
        **shortened(_with_kept_data(graph.parts, graph.weights, graph.statistics)),
    }


def _weight(weights: Mapping[str, KeptArray], name: str) -> Mapping[str, Any] | None:
    kept = weights.get(name)
    return None if kept is None else {"values": {"file": f"{DATA}/{kept.file}"}}


def _with_kept_data(
    parts: Mapping[str, Any],
    weights: Mapping[str, KeptArray],
    statistics: Mapping[str, DataStatistics],
) -> dict[str, Any]:
    whole = with_data(parts)
    inputs = whole.get("inputs", {})
    for seed, (name, entry) in enumerate(inputs.items(), 1):
        tensor = {key: item for key, item in entry.items() if key not in OWN_DATA}
        generated = {key: item for key, item in entry.items() if key in OWN_DATA}
        data = _weight(weights, name) or following(statistics.get(name), generated, seed)
        inputs = {**inputs, name: {**tensor, **data}}
    return {**whole, "inputs": inputs} if inputs else whole


def with_data(parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return a graph's parts with generated data that suits the first node that reads each input.

    A node is passed over if it needs a list of values, such as distinct indices, and reads the
    input with other Sizes. An input gets no data if all its nodes are passed over.
    """
    inputs = dict(parts.get("inputs", {}))
    missing = set(inputs)
    for node in parts["nodes"].values():
        operator = catalogue.operator(node["operator"])
        desc = None
        for field in operator.of_kind(FieldKind.INPUT):
            written = node["desc"].get(field.name)
            for each in written if isinstance(written, list) else [written]:
                source = each.get("from") if isinstance(each, Mapping) else None
                if not isinstance(source, str) or source not in missing:
                    continue
                desc = desc or desc_of(operator, node["desc"])
                value = desc[field.name]
                tensor = value[0] if isinstance(value, tuple) else value
                seed = list(inputs).index(source) + 1
                data = input_data(operator, desc, field, tensor, seed)
                if "values" in data and inputs[source]["Sizes"] != list(tensor.Sizes):
                    continue
                inputs[source] = {**inputs[source], **data}
                missing.remove(source)
    return {**parts, "inputs": inputs} if inputs else dict(parts)


def execution_tags(flags: int) -> list[str]:
    """Return the tags of DML_EXECUTION_FLAGS."""
    return [tag for tag, flag in FLAG_TAGS.items() if flags & flag]


def _tags(flags: int) -> Mapping[str, Any]:
    tags = execution_tags(flags)
    return {"tags": tags} if tags else {}


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


def _outcome(hresult: str | None) -> str:
    if hresult is None:
        return ", and the program ended in that call"
    return "" if hresult == "S_OK" else f", and refused with {hresult}"


def sound_entries(
    head: Entry, entries: list[Entry], path: Path, left_out: dict[str, str]
) -> list[Entry]:
    """Return the entries that load.

    Args:
        path: the path that the case file will have; the data files of the entries exist already.
        left_out: gets the first problem of each entry that does not load, by `FOLDER/STEM/NAME`.

    Raises:
        OSError: a trial file cannot be written next to `path`.
    """
    folder = path.parent
    if not _problems(head, entries, folder):
        return entries
    sound = []
    for entry in entries:
        problems = _problems(head, [entry], folder)
        if problems:
            left_out[f"{folder.name}/{path.stem}/{entry['name']}"] = problems[0].message
        else:
            sound.append(entry)
    return sound


def _problems(head: Entry, entries: Sequence[Entry], folder: Path) -> list[Problem]:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f".{FILE}-trial.yaml"
    path.write_text(document_text({**head, "cases": list(entries)}), encoding="utf-8")
    try:
        for planned in load_suite([path]).plan():
            valid_case(planned)
    except InvalidFilesError as error:
        return list(error.problems)
    finally:
        path.unlink()
    return []
