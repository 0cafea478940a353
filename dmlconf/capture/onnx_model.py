"""Run an ONNX model in ONNX Runtime's DirectML provider, for `dmlconf capture --model`.

`python -m dmlconf.capture.onnx_model FILE [--inputs FILE] [--dimension NAME=N] [--unfused]`; only
this module needs ONNX Runtime.
"""

from __future__ import annotations

import argparse
import math
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from dmlconf.extras import install_command
from dmlconf.limits import LARGEST_MODEL_INPUTS
from dmlconf.tensors.datatypes import Array

__all__ = ["ModelError", "generated", "inputs_from", "main", "parsed_dimension"]

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
_CANNOT: Final = 3


class ModelError(ValueError):
    """Inputs that cannot be made or read."""


def parsed_dimension(text: str) -> tuple[str, int]:
    """Return the name and size of `batch=1`.

    Raises:
        ModelError: the text is another.
    """
    name, _, size = text.rpartition("=")
    if not name or not size.isdecimal() or not int(size):
        raise ModelError(f"{text!r} is not a dimension such as batch=1")
    return name, int(size)


def generated(
    name: str, kind: str, shape: Sequence[int | str | None], dimensions: Mapping[str, int]
) -> Array:
    """Return data for an input: FLOAT from -1 to 1, integers from 0 to 9, the same each time.

    Args:
        name: the input.
        kind: its type as ONNX Runtime names it, such as `tensor(float)`.
        shape: its sizes; a name or None for one that the model leaves open.
        dimensions: sizes by name; 1 for others.

    Raises:
        ModelError: the type is not known, or it is too large.
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


def inputs_from(path: Path) -> dict[str, Array]:
    """Return the arrays of an .npz file, by name; nothing in it is executed.

    Raises:
        ModelError: it cannot be read, or holds more than `LARGEST_MODEL_INPUTS` bytes.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist())
        if size > LARGEST_MODEL_INPUTS:
            raise ModelError(f"{path} holds {size:,} bytes; at most {LARGEST_MODEL_INPUTS:,}")
        with np.load(path, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, NotImplementedError) as error:
        raise ModelError(f"{path} cannot be read as an .npz file: {error}") from error


def main(arguments: Sequence[str]) -> int:
    """Run a model once, and compare its outputs with those of ONNX Runtime's CPU provider."""
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("--inputs", type=Path)
    parser.add_argument("--dimension", action="append", default=[])
    parser.add_argument("--unfused", action="store_true")
    options = parser.parse_args(arguments)
    try:
        dimensions = dict(map(parsed_dimension, options.dimension))
        given = inputs_from(options.inputs) if options.inputs else {}
        return _run(options.model, dimensions, given, fused=not options.unfused)
    except ModelError as error:
        print(f"Error: {error}", file=sys.stderr)
        return _CANNOT


def _run(
    model: Path, dimensions: Mapping[str, int], given: Mapping[str, Array], *, fused: bool
) -> int:
    try:
        import onnxruntime
    except ImportError as error:
        raise ModelError(
            f"ONNX Runtime is missing ({error}); install it with: {install_command('directml')}"
        ) from error

    def session(*providers: Any) -> Any:
        settings = onnxruntime.SessionOptions()
        settings.enable_mem_pattern = False
        settings.log_severity_level = 3
        settings.add_session_config_entry("ep.dml.disable_graph_fusion", "0" if fused else "1")
        for name, size in dimensions.items():
            settings.add_free_dimension_override_by_name(name, size)
        return onnxruntime.InferenceSession(str(model), settings, providers=list(providers))

    try:
        plain = session("CPUExecutionProvider")
        inputs = {
            each.name: given[each.name]
            if each.name in given
            else generated(each.name, each.type, each.shape, dimensions)
            for each in plain.get_inputs()
        }
        names = [each.name for each in plain.get_outputs()]
        expected = plain.run(names, inputs)
        tested = session(("DmlExecutionProvider", {"device_id": "0"}), "CPUExecutionProvider")
        if "DmlExecutionProvider" not in tested.get_providers():
            raise ModelError("ONNX Runtime has no DirectML provider here")
        actual = tested.run(names, inputs)
    except ModelError:
        raise
    except Exception as error:  # ONNX Runtime raises its own kinds, which are not public.
        reason = str(error).strip().splitlines()
        print(f"ONNX Runtime: {reason[0] if reason else type(error).__name__}", file=sys.stderr)
        return 1
    for name, one, other in zip(names, actual, expected, strict=True):
        print(f"{name}: {_difference(one, other)}")
    return 0


def _difference(one: Any, other: Any) -> str:
    """Return how far an output is from that of the CPU provider, in words."""
    if not isinstance(one, np.ndarray) or one.dtype.kind not in "fiub":
        return "not compared with the CPU provider"
    if one.shape != other.shape:
        return f"sizes {list(one.shape)}, on the CPU provider {list(other.shape)}"
    if np.array_equal(one, other, equal_nan=one.dtype.kind == "f"):
        return "the same bits as the CPU provider"
    wide = one.astype(np.float64), other.astype(np.float64)
    both = np.isfinite(wide[0]) & np.isfinite(wide[1])
    if (np.isfinite(wide[0]) != np.isfinite(wide[1])).any():
        return "NaN or infinity where the CPU provider has none, or the reverse"
    error = float(np.abs(wide[0] - wide[1])[both].max(initial=0))
    size = float(np.abs(wide[1])[both].max(initial=0))
    return f"at most {error:.3g} off the CPU provider, whose largest number is {size:.3g}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
