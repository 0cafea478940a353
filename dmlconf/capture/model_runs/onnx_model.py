"""Run an ONNX model in ONNX Runtime's DirectML provider, for `dmlconf capture --model`.

`python -m dmlconf.capture.model_runs.onnx_model FILE [OPTIONS]` compares the model's outputs with
those of the CPU provider, and ends with `OUTPUTS_DIFFER` if they differ too much. Options are
`--inputs FILE`, `--dimension NAME=N` and `--unfused`. With `--find-difference`, the program prints
the first node whose output differs too much.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from dmlconf.capture.model_runs.first_difference import first_difference, search_lines
from dmlconf.capture.model_runs.input_files import inputs_from
from dmlconf.capture.model_runs.onnx_graph import read_graph
from dmlconf.capture.model_runs.onnx_sessions import (
    ModelError,
    OnnxRuntimeError,
    OnnxSession,
    SessionSettings,
)
from dmlconf.capture.model_runs.output_difference import output_difference
from dmlconf.documents.wording import first_names
from dmlconf.limits import LARGEST_MODEL_INPUTS
from dmlconf.tensors.datatypes import Array

__all__ = ["OUTPUTS_DIFFER", "generated", "main", "model_inputs", "parsed_dimension"]

_TYPES: Final[Mapping[str, Any]] = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int8)": np.int8,
    "tensor(int16)": np.int16,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(uint8)": np.uint8,
    "tensor(uint16)": np.uint16,
    "tensor(uint32)": np.uint32,
    "tensor(uint64)": np.uint64,
    "tensor(bool)": np.bool_,
}

_MOST_INTEGER: Final = 9
_MOST_DIGITS: Final = 19
_DIMENSION_LIMIT: Final = 1 << 63
"""ONNX stores dimensions as INT64, which have at most 19 digits."""

_MOST_NAMED: Final = 5

_CANNOT: Final = 3
"""The exit code if the model, its inputs or a package cannot be used."""

OUTPUTS_DIFFER: Final = 4
"""The exit code if an output differs by more than `output_difference` permits."""


def parsed_dimension(text: str) -> tuple[str, int]:
    """Return the name and the size that a text such as `batch=1` states.

    Raises:
        ModelError: the text is not of this form, or the size is 0 or too large.
    """
    name, _, size = text.rpartition("=")
    fits = size.isdecimal() and len(size) <= _MOST_DIGITS and 0 < int(size) < _DIMENSION_LIMIT
    if not name or not fits:
        raise ModelError(f"{text!r} is not a dimension such as batch=1")
    return name, int(size)


def generated(
    name: str, kind: str, shape: Sequence[int | str | None], dimensions: Mapping[str, int]
) -> Array:
    """Return random data for an input: FLOAT from -1 to 1, integers from 0 to 9, or BOOL.

    The data depends on name, type and sizes only.

    Args:
        kind: the type of the input as ONNX Runtime names it, such as `tensor(float)`.
        shape: the sizes of the input; a name or None for an open size.
        dimensions: open sizes by name; all other open sizes are 1.

    Raises:
        ModelError: the type is not known, or the input is too large.
    """
    if kind not in _TYPES:
        raise ModelError(f"the input {name} is a {kind}; give its data with --inputs")
    sizes = [size if isinstance(size, int) else dimensions.get(size or "", 1) for size in shape]
    dtype = np.dtype(_TYPES[kind])
    if math.prod(sizes) * dtype.itemsize > LARGEST_MODEL_INPUTS:
        raise ModelError(f"the input {name} has the sizes {sizes}, which are too large")
    random = np.random.default_rng(list(name.encode()))
    if dtype.kind == "f":
        return random.uniform(-1, 1, sizes).astype(dtype)
    high = 1 if dtype.kind == "b" else _MOST_INTEGER
    return random.integers(0, high, sizes, endpoint=True).astype(dtype)


def main(arguments: Sequence[str]) -> int:
    """Run a model in both providers; compare its outputs, or find the first node that differs.

    Returns:
        the exit code: 0, `OUTPUTS_DIFFER`, 1 if ONNX Runtime cannot load or run the model, or 3 if
        the model, its inputs or a package cannot be used. A search gives 0, whatever it finds.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--inputs", type=Path)
    parser.add_argument("--dimension", action="append", default=[])
    parser.add_argument("--unfused", action="store_true")
    parser.add_argument("--find-difference", action="store_true")
    options = parser.parse_args(arguments)
    try:
        dimensions = dict(map(parsed_dimension, options.dimension))
        file_inputs = inputs_from(options.inputs) if options.inputs else {}
        settings = SessionSettings(options.model, dimensions, not options.unfused)
        if options.find_difference:
            return _find_difference(settings, file_inputs)
        return _compare_outputs(settings, file_inputs)
    except ModelError as error:
        print(f"Error: {error}", file=sys.stderr)
        return _CANNOT
    except OnnxRuntimeError as error:
        print(f"ONNX Runtime: {error}", file=sys.stderr)
        return 1


def _compare_outputs(settings: SessionSettings, file_inputs: Mapping[str, Array]) -> int:
    cpu = settings.cpu_with_open_dimensions()
    inputs = model_inputs(cpu, settings, file_inputs)
    names = [each.name for each in cpu.runtime.get_outputs()]
    expected = cpu.run(names, inputs)
    actual = settings.directml().run(names, inputs)
    code = 0
    for name, one, other in zip(names, actual, expected, strict=True):
        difference = output_difference(one, other)
        print(f"{name}: {difference.text}")
        code = OUTPUTS_DIFFER if difference.beyond else code
    return code


def _find_difference(settings: SessionSettings, file_inputs: Mapping[str, Array]) -> int:
    graph = read_graph(settings.path)
    inputs = model_inputs(settings.cpu_with_open_dimensions(), settings, file_inputs)
    search = first_difference(graph, inputs, settings.cpu, settings.directml)
    for line in search_lines(search):
        print(line)
    return 0


def model_inputs(
    session: OnnxSession, settings: SessionSettings, file_inputs: Mapping[str, Array]
) -> dict[str, Array]:
    """Return the data of a model's inputs.

    Args:
        session: a session of the model without sizes of open dimensions.
        file_inputs: data from a file, by input.

    Raises:
        ModelError: the model lacks a dimension or input that the user names, or data cannot be
            generated.
    """
    inputs = session.runtime.get_inputs()
    dimensions = [size for each in inputs for size in each.shape if isinstance(size, str)]
    _require("open dimension", settings.dimensions, dimensions)
    _require("input", file_inputs, [each.name for each in inputs])
    return {
        each.name: file_inputs[each.name]
        if each.name in file_inputs
        else generated(each.name, each.type, each.shape, settings.dimensions)
        for each in inputs
    }


def _require(noun: str, wanted: Iterable[str], known: Sequence[str]) -> None:
    for name in wanted:
        if name not in known:
            others = first_names(list(dict.fromkeys(known)), _MOST_NAMED) or "none"
            raise ModelError(f"the model has no {noun} {name!r}; it has {others}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
