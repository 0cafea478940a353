"""Keep the tensors of dispatches: as NumPy files in a folder, or their statistics alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from dmlconf.capture.data_statistics import DataStatistics
from dmlconf.capture.thread_lock import ThreadLock
from dmlconf.documents.whole_files import whole_file
from dmlconf.tensors.datatypes import Array

__all__ = ["ArrayStore", "StatisticsStore", "Store"]


class Store(Protocol):
    """Keeps tensors."""

    @property
    def event(self) -> str:
        """The `event` of the journal's lines about dispatches."""
        ...

    def put(self, array: Array) -> Mapping[str, Any] | None:
        """Keep a tensor, and return its entry for the journal; None if it exceeds the limit."""
        ...


class StatisticsStore:
    """Keeps only the statistics of tensors."""

    event: ClassVar = "statistics"

    def put(self, array: Array) -> Mapping[str, Any]:
        """Return an entry for the journal; its statistics are None if no element is finite."""
        statistics = DataStatistics.of(array)
        return {"statistics": None if statistics is None else asdict(statistics)}


class ArrayStore:
    """Keeps arrays in a folder, up to a number of bytes; equal arrays share a file."""

    event: ClassVar = "dispatch"

    def __init__(self, folder: Path, most_bytes: int) -> None:
        self._folder = folder
        self._left = most_bytes
        self._lock = ThreadLock()
        self._known: dict[str, Mapping[str, Any]] = {}

    def put(self, array: Array) -> Mapping[str, Any] | None:
        """Keep an array, and return its entry for the journal; None if it no longer fits.

        Raises:
            OSError: the file cannot be written.
        """
        content = np.ascontiguousarray(array).tobytes()
        elements = sha256(content).hexdigest()
        name = sha256(f"{elements} {array.dtype.name} {array.shape}".encode()).hexdigest()[:32]
        with self._lock:
            known = self._known.get(name)
            if known is not None:
                return known
            if array.nbytes > self._left:
                return None
            self._left -= array.nbytes
            finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
            # A child that the program forks may write the same file, and die as it does.
            with whole_file(self._folder / f"{name}.npy") as stream:
                np.save(stream, array, allow_pickle=False)
            kept = {"file": f"{name}.npy", "elements": elements, "finite": finite}
            self._known[name] = kept
            return kept
