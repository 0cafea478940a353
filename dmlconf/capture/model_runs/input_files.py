"""Read inputs of a model from untrusted .npz files.

Source: the page "numpy.lib.format" of NumPy's documentation, versions 1.0 and 2.0 of the format.
"""

from __future__ import annotations

import math
from io import BytesIO
from pathlib import Path
from typing import Final

import numpy as np
from numpy.lib import format as npy

from dmlconf.capture.model_runs.onnx_sessions import ModelError
from dmlconf.documents.files import UnreadableFileError
from dmlconf.documents.zip_members import DamagedArchiveError, opened_archive
from dmlconf.limits import LARGEST_MODEL_INPUTS
from dmlconf.tensors.datatypes import Array

__all__ = ["inputs_from"]

_SUFFIX: Final = ".npy"


def inputs_from(path: Path) -> dict[str, Array]:
    """Return the arrays of an .npz file, by name; nothing in it is executed.

    Raises:
        ModelError: the file cannot be read, is not an .npz file, or holds Python objects or more
            than `LARGEST_MODEL_INPUTS` bytes when unpacked.
    """
    arrays: dict[str, Array] = {}
    left = LARGEST_MODEL_INPUTS
    try:
        with opened_archive(path, LARGEST_MODEL_INPUTS) as members:
            for member in members.names:
                content = members.read(member)
                left -= len(content)
                if left < 0:
                    limit = f"{LARGEST_MODEL_INPUTS:,}"
                    raise DamagedArchiveError(f"it holds more than the limit of {limit} bytes")
                name = member.removesuffix(_SUFFIX)
                arrays[name] = _array(name, content)
    except (DamagedArchiveError, UnreadableFileError) as error:
        raise ModelError(f"{path} cannot be read as an .npz file: {error}") from error
    return arrays


def _array(name: str, content: bytes) -> Array:
    stream = BytesIO(content)
    try:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, dtype = read(stream)
    except Exception as error:  # NumPy raises many types, such as SyntaxError for the type ",".
        raise DamagedArchiveError(f"{name} is not an array: {error}") from error
    if dtype.hasobject:
        raise DamagedArchiveError(f"{name} holds Python objects, which are not read")
    rest = len(content) - stream.tell()
    # An array of the stated shape may not fit into memory.
    if min(shape, default=0) < 0 or math.prod(shape) * dtype.itemsize != rest:
        raise DamagedArchiveError(f"{name} has the shape {shape}, which {rest:,} bytes do not hold")
    array = np.frombuffer(content, dtype, offset=stream.tell())
    return array.reshape(shape, order="F" if by_columns else "C")
