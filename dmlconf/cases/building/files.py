"""Read tensor data from NumPy files (`.npy`, without pickles) in a case file's folder or below.

Source: the page "numpy.lib.format" of NumPy's documentation, versions 1.0 and 2.0 of the format.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from hashlib import sha256
from io import BufferedReader
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.lib import format as npy

from dmlconf.cases.errors import CaseError
from dmlconf.catalogue.desc import TensorDesc
from dmlconf.documents.files import UnreadableFileError, open_regular
from dmlconf.tensors.datatypes import Array

__all__ = ["CaseFiles"]

_SUFFIX: Final = ".npy"
_HINT: Final = "numpy.save(..., allow_pickle=False) writes such files"
_BLOCK_BYTES: Final = 1 << 20

Where = Sequence[str | int]


class CaseFiles:
    """Reads the data files that a case names, and keeps their digests.

    Attributes:
        digests: SHA-256 in hexadecimal of each file that was read, by its name in the case.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.digests: dict[str, str] = {}
        self.reads = 0

    def read(self, name: Any, tensor: TensorDesc, where: Where) -> Array:
        """Return a file's array in the shape and data type of a tensor.

        Args:
            name: the file's path from the folder.
            tensor: the tensor that the file is for. The file's array has its `Sizes` or one
                dimension. Elements of 4-bit types have a byte each.
            where: the keys and indices that lead to the name in the entry, for errors.

        Raises:
            CaseError: the name is an absolute path, leads outside the folder, or does not end in
                `.npy`; or the file cannot be read as an array, or does not match the tensor.
        """
        path = self._path(name, where)
        try:
            with open_regular(path) as stream:
                array, digest = _read(stream, tensor, where)
        except (UnreadableFileError, OSError) as error:
            raise CaseError(where, f"{name} {error}") from error
        self.digests[name] = digest
        self.reads += 1
        return array

    def _path(self, name: Any, where: Where) -> Path:
        if not isinstance(name, str) or not name.endswith(_SUFFIX):
            raise CaseError(where, f"{name!r} is not the name of a {_SUFFIX} file", _HINT)
        folder = self._folder.resolve()
        try:
            path = (folder / name).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            raise CaseError(where, f"{name!r} cannot be read: {error}") from error
        hint = "put it next to the case file, or in a folder there"
        if Path(name).is_absolute():
            raise CaseError(where, f"{name} is an absolute path", hint)
        if not path.is_relative_to(folder):
            raise CaseError(where, f"{name} is outside the case file's folder", hint)
        return path


def _read(stream: BufferedReader, tensor: TensorDesc, where: Where) -> tuple[Array, str]:
    shape, fortran_order, dtype = _header(stream, where)
    dtype_of_tensor = tensor.DataType.dtype
    if dtype.newbyteorder("=") != dtype_of_tensor:
        message = f"holds {dtype.name.upper()} where DataType is {tensor.DataType}"
        raise CaseError(where, message, _HINT)
    if shape not in (tensor.Sizes, (math.prod(tensor.Sizes),)):
        raise CaseError(where, f"has the shape {shape} where Sizes are {tensor.Sizes}")
    size = os.fstat(stream.fileno()).st_size
    begin, length = stream.tell(), math.prod(shape) * dtype.itemsize
    if size != begin + length:
        message = f"is {size:,} bytes long where its header promises {begin + length:,}"
        raise CaseError(where, message, "it may be cut off; write it again")
    stream.seek(0)
    digest = sha256(stream.read(begin))
    array = np.empty(math.prod(shape), dtype)
    content = array.view(np.uint8).data
    for start in range(0, length, _BLOCK_BYTES):
        block = content[start : start + _BLOCK_BYTES]
        if stream.readinto(block) != len(block):
            raise CaseError(where, "changed while it was read")
        digest.update(block)
    shaped = array.reshape(shape[::-1]).T if fortran_order else array
    array_of_tensor = np.ascontiguousarray(shaped, dtype_of_tensor).reshape(tensor.Sizes)
    _require_range(array_of_tensor, tensor, where)
    return array_of_tensor, digest.hexdigest()


def _header(stream: BufferedReader, where: Where) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = npy.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"version {version[0]}.{version[1]} of the format is not read")
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran_order, dtype = read(stream)
    except (ValueError, TypeError, LookupError, SyntaxError, RecursionError, MemoryError) as error:
        summary = str(error).partition("\n")[0]
        raise CaseError(where, f"is not a NumPy array: {summary}", _HINT) from error
    if dtype.hasobject or dtype.fields is not None:
        raise CaseError(where, "holds Python objects or records, which are not read", _HINT)
    return shape, fortran_order, dtype


def _require_range(array: Array, tensor: TensorDesc, where: Where) -> None:
    """Raise `CaseError` if the tensor has a 4-bit type that a number does not fit."""
    if tensor.DataType.bits >= 8 or not array.size:
        return
    least, most = int(array.min()), int(array.max())
    if least < tensor.DataType.minimum or most > tensor.DataType.maximum:
        message = f"has numbers from {least} to {most}, which {tensor.DataType} does not hold"
        raise CaseError(where, message, "one number of 4 bits is stored in each byte")
