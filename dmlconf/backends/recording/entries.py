"""Check the entries of a recording when its file is read, and build each when it is needed.

Checking thousands of entries is several times faster than building them, and few are needed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.backends.protocol import Outputs, Rejection
from dmlconf.backends.recording.model import Entry, sample_seed
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.sample import Sample, require_sample, sample_indices

__all__ = ["OUTPUTS", "TYPE_OF_DTYPE", "DamagedEntryError", "Kind", "LazyEntries"]

TYPE_OF_DTYPE: Final = {t.dtype: t for t in DataType if t.bits >= 8}
"""The data type as which a recording stores elements; INT4 is stored as INT8, UINT4 as UINT8."""

_BY_NAME: Final = {str(t): dtype.newbyteorder("<") for dtype, t in TYPE_OF_DTYPE.items()}
_DIGEST: Final = re.compile("[0-9a-f]{64}")

_ARRAY_KEYS: Final = frozenset({"type", "sizes", "at"})
_SAMPLE_KEYS: Final = _ARRAY_KEYS | {"sample", "sha256"}
"""The keys of an output in the manifest: one that is kept whole, and one that is sampled."""

OUTPUTS: Final = "outputs.bin"
"""The member of a recording's zip archive with the kept elements of all outputs."""

_MOST_DIMENSIONS: Final = 8
"""The most dimensions of DirectML's tensors; NumPy may refuse arrays of more."""

_MOST_ELEMENTS: Final = 1 << 63
"""A sampled output of this many elements or more is refused, since indices are INT64."""

Kind = tuple[str, str | None]
"""The folder of a case with outputs, and the data type of one of them; None for the case itself."""


class DamagedEntryError(Exception):
    """What is wrong with an entry."""


class LazyEntries(Mapping[str, Entry]):
    """Entries by the case's identifier.

    Attributes:
        kinds: the kinds of outputs, each with the identifier of the first case of that kind.
    """

    def __init__(self, cases: Mapping[str, Any], outputs: bytes) -> None:
        """Check all entries.

        Args:
            cases: the manifest's cases, by identifier.
            outputs: the kept elements of all outputs; offsets in the cases point into them.

        Raises:
            DamagedEntryError: an entry is malformed, or its elements lie beyond the end of
                `outputs`.
        """
        self._entries: dict[str, Any] = dict(cases)
        self._outputs = outputs
        self.kinds: dict[Kind, str] = {}
        for identifier, case in cases.items():
            try:
                types = _checked(case, len(outputs))
            except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
                raise DamagedEntryError(f"the case {identifier}: {_reason(error)}") from error
            folder = identifier.partition("/")[0]
            for each in types:
                self.kinds.setdefault((folder, each), identifier)

    def __getitem__(self, identifier: str) -> Entry:
        """Return an entry, built at the first access."""
        entry = self._entries[identifier]
        if not isinstance(entry, Entry):
            entry = self._entries[identifier] = Entry(entry["digest"], self._outcome(entry))
        return entry

    def __contains__(self, identifier: object) -> bool:
        """Return whether there is an entry, without building it."""
        return identifier in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _outcome(self, case: Mapping[str, Any]) -> Outputs | Rejection:
        if "outputs" not in case:
            return Rejection(case["stage"], case["hresult"])
        arrays, samples = {}, {}
        for name, output in case["outputs"].items():
            if "sample" in output:
                samples[name] = self._sample(output, sample_seed(case["digest"], name))
            else:
                arrays[name] = self._array(output["type"], output["sizes"], output["at"])
        return Outputs(arrays, samples=samples)

    def _sample(self, output: Mapping[str, Any], seed: str) -> Sample:
        count, sizes = output["sample"], output["sizes"]
        values = self._array(output["type"], [count], output["at"])
        indices = sample_indices(math.prod(sizes), seed, count)
        return Sample(values.dtype, tuple(sizes), output["sha256"], indices, values)

    def _array(self, data_type: str, sizes: list[int], at: int) -> Array:
        dtype, count = _BY_NAME[data_type], math.prod(sizes)
        elements = np.frombuffer(self._outputs, dtype, count, at) if count else np.empty(0, dtype)
        return elements.reshape(sizes).astype(dtype.newbyteorder("="), copy=False)


def _reason(error: Exception) -> str:
    return f"it lacks {error}" if isinstance(error, KeyError) else str(error)


def _checked(case: Any, length: int) -> list[str | None]:
    """Check a case of the manifest; `length` is the number of bytes of `OUTPUTS`.

    Return the second items of its `Kind`s: None, then the data type of each output. The list is
    empty if the case was rejected.
    """
    digest = case["digest"]
    if not isinstance(digest, str) or _DIGEST.fullmatch(digest) is None:
        raise ValueError("its digest is not 64 hexadecimal digits")
    if "outputs" not in case:
        _require(case, {"digest", "stage", "hresult"})
        if not isinstance(case["stage"], str) or not isinstance(case["hresult"], str):
            raise TypeError("its stage and HRESULT are not both strings")
        return []
    _require(case, {"digest", "outputs"})
    types: list[str | None] = [None]
    for name, output in case["outputs"].items():
        if "sample" in output:
            _check_sample(name, output, length)
        else:
            _require(output, _ARRAY_KEYS)
            _check_array(name, output["type"], output["sizes"], output["at"], length)
        types.append(output["type"])
    return types


def _require(mapping: Mapping[str, Any], keys: Collection[str]) -> None:
    if mapping.keys() != keys:
        raise ValueError(f"it has {', '.join(mapping)}, not {', '.join(sorted(keys))}")


def _check_sample(name: str, output: Mapping[str, Any], length: int) -> None:
    _require(output, _SAMPLE_KEYS)
    count, elements, sizes = output["sample"], output["sha256"], output["sizes"]
    if not isinstance(elements, str) or _DIGEST.fullmatch(elements) is None:
        raise ValueError(f"the SHA-256 of {name} is not 64 hexadecimal digits")
    _check_array(name, output["type"], [count], output["at"], length)
    if not isinstance(sizes, list) or not all(map(_is_count, sizes)):
        raise ValueError(f"the sizes of {name} are not non-negative integers")
    if math.prod(sizes) >= _MOST_ELEMENTS:
        raise ValueError(f"{name} has more elements than indices can name")
    require_sample(math.prod(sizes), count)


def _check_array(name: str, data_type: Any, sizes: Any, at: Any, length: int) -> None:
    if not isinstance(sizes, list) or not all(map(_is_count, sizes)) or not _is_count(at):
        raise ValueError(f"the sizes or the offset of {name} are not non-negative integers")
    if data_type not in _BY_NAME:
        raise ValueError(f"{name} has no data type that can be stored")
    dtype, count = _BY_NAME[data_type], math.prod(sizes)
    if at + count * dtype.itemsize > length:
        raise ValueError(f"{name} lies beyond the end of {OUTPUTS}")
    if not count or len(sizes) > _MOST_DIMENSIONS:
        shape = [1] * len(sizes) if count else sizes
        np.empty(math.prod(shape), dtype).reshape(shape)  # An error if NumPy has no such array.


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 1 << 48
