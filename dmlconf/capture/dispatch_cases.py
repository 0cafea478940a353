"""Write captured dispatches as cases with the application's data, and record their outputs."""

from __future__ import annotations

import math
import platform
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import numpy as np

import dmlconf
from dmlconf.backends.directml.api.library import native_version
from dmlconf.backends.protocol import Capabilities, Outputs
from dmlconf.backends.recording.file import SUFFIX, recording_bytes
from dmlconf.backends.recording.model import Entry, Recording, entry_of
from dmlconf.capture.captured import (
    Captured,
    CapturedDispatch,
    CapturedGraph,
    CapturedOperator,
    KeptArray,
)
from dmlconf.capture.case_files import DATA, Written, execution_tags, sound_entries
from dmlconf.capture.shortening import shortened
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.selecting.selection import CAPTURED_TAG
from dmlconf.cases.writing.document_text import document_text
from dmlconf.catalogue.model import FEATURE_LEVELS
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.documents.whole_files import write_whole
from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["FOLDER", "RECORDING", "file_stem", "write_dispatches"]

FOLDER: Final = "dispatches"
"""The name of the folder of dispatches, below the folder of captured cases."""

RECORDING: Final = f"captured{SUFFIX}"
"""The name of the recording of the dispatches' outputs, in the same folder."""

_FOLLOWER: Final = "follower"
"""The tag of a dispatch that reads a NaN or an infinity."""


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A dispatch with its number in the order of submission, from 1."""

    number: int
    dispatch: CapturedDispatch


def file_stem(number: int, what: CapturedOperator | CapturedGraph) -> str:
    """Return a dispatch's file name without suffix; files are run in the order of their names."""
    kind = "graph" if isinstance(what, CapturedGraph) else what.operator.lower()
    return f"{number:05}-{kind.replace('_', '-')}"


def write_dispatches(folder: Path, captured: Captured, source: Path) -> Written:
    """Write each dispatch as a separate case file, in order, and the recording next to them.

    Dispatches whose case does not load are left out. If all are, there is no recording.

    Args:
        folder: the folder below which the folder `FOLDER` is created.
        source: the folder of the kept arrays.

    Raises:
        OSError: a file cannot be written, or a kept array or the library cannot be read.
        BackendError: the outputs are larger than a recording may be.
    """
    target = folder / FOLDER
    (target / DATA).mkdir(parents=True, exist_ok=True)
    files: list[Path] = []
    left_out: dict[str, str] = {}
    entries: dict[str, Entry] = {}
    writers = _writers(captured.dispatches)
    for number, dispatch in enumerate(captured.dispatches, 1):
        each = _Numbered(number, dispatch)
        for kept in dispatch.inputs.values():
            shutil.copyfile(source / kept.file, target / DATA / kept.file)
        head, entry = _document(each, writers)
        path = target / f"{file_stem(number, dispatch.what)}.yaml"
        if not sound_entries(head, [entry], path, left_out):
            continue
        write_whole(path, document_text({**head, "cases": [entry]}))
        [planned] = load_suite([path]).plan()
        case = valid_case(planned)
        outputs = {name: _read(source, kept) for name, kept in dispatch.outputs.items()}
        entries[case.identifier] = entry_of(case, Outputs(outputs))
        files.append(path)
    if entries:
        write_whole(target / RECORDING, recording_bytes(_recording(entries, captured.library)))
    return Written(tuple(files), len(files), left_out)


def _read(source: Path, kept: KeptArray) -> Array:
    array: Array = np.load(source / kept.file, allow_pickle=False)
    return array


def _writers(dispatches: Sequence[CapturedDispatch]) -> Mapping[str, int]:
    """Return the number, from 1, of the first dispatch that wrote each array with NaN or infinity.

    The key is the SHA-256 of the array's elements.
    """
    writers: dict[str, int] = {}
    for number, dispatch in enumerate(dispatches, 1):
        for kept in dispatch.outputs.values():
            if not kept.finite:
                writers.setdefault(kept.elements, number)
    return writers


def _document(
    each: _Numbered, writers: Mapping[str, int]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    dispatch = each.dispatch
    what = dispatch.what
    values = {
        name: {"values": {"file": f"{DATA}/{kept.file}"}} for name, kept in dispatch.inputs.items()
    }
    followed = _followed(each, writers)
    note = f"Dispatch {each.number}." + (f" {followed}" if followed else "")
    tags = [*execution_tags(what.flags), *([_FOLLOWER] if followed else [])]
    start: dict[str, Any] = {"name": f"dispatch-{each.number}", "note": note}
    if tags:
        start["tags"] = tags
    if isinstance(what, CapturedGraph):
        inputs = {
            name: {**tensor, **values.get(name, {})}
            for name, tensor in what.parts.get("inputs", {}).items()
        }
        parts = {**what.parts, "inputs": inputs} if inputs else dict(what.parts)
        head = {"graph": f"graph {what.number} of an application", "tags": [CAPTURED_TAG]}
        return head, {**start, **shortened(parts)}
    desc = dict(what.desc)
    for name, data in values.items():
        tensor = TensorRef.of(name)
        desc = tensor.replaced(desc, {**tensor.read(desc), **data})
    return {"operator": what.operator, "tags": [CAPTURED_TAG]}, {**start, "desc": desc}


def _followed(each: _Numbered, writers: Mapping[str, int]) -> str:
    """Return a note on inputs with NaN or infinity, and which earlier dispatch wrote them.

    The note is empty if all inputs are finite.
    """
    sentences = []
    for name, kept in each.dispatch.inputs.items():
        if kept.finite:
            continue
        writer = writers.get(kept.elements, math.inf)
        made = f", which dispatch {writer} wrote" if writer < each.number else ""
        sentences.append(f"Its input {name} already holds a NaN or an infinity{made}.")
    return " ".join(sentences)


def _recording(entries: Mapping[str, Entry], library: str) -> Recording:
    content = Path(library).read_bytes() if library else b""
    environment = {
        "backend": "directml",
        "version": native_version(content),
        "adapter": None,
        "driver": None,
        "details": {
            "directml_file": library,
            "directml_origin": "the captured application",
            "directml_sha256": sha256(content).hexdigest(),
        },
        "platform": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    return Recording(
        dmlconf=dmlconf.__version__,
        backend="directml",
        environment=environment,
        capabilities=Capabilities(FEATURE_LEVELS[-1], frozenset(DataType)),
        entries=entries,
    )
