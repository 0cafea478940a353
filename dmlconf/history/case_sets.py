"""Pack the set of cases that a run had into one value of the database, and read it back.

Many runs share a set, which is stored once.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from dmlconf.history.errors import HistoryError
from dmlconf.limits import LARGEST_CASE_SET

__all__ = ["Members", "holds", "packed", "set_digest", "unpacked"]

Members = NDArray[np.int32]
"""The ids of cases, in rising order."""


def packed(ids: Iterable[int]) -> bytes:
    """Return ids as the column `members` of the table `case_set` has them."""
    ordered = np.array(sorted(ids), dtype="<i4")
    return zlib.compress(np.diff(ordered, prepend=np.int32(0)).astype("<i4").tobytes(), 6)


def unpacked(data: bytes) -> Members:
    """Return the ids of a set that `packed` returned.

    Raises:
        HistoryError: the data is damaged, or its ids take more than `LARGEST_CASE_SET` bytes.
    """
    inflater = zlib.decompressobj()
    try:
        steps = inflater.decompress(data, LARGEST_CASE_SET)
    except zlib.error as error:
        raise HistoryError("the history is damaged: its sets of cases cannot be read") from error
    if not inflater.eof or len(steps) % 4:
        raise HistoryError(
            "the history is damaged: a set of cases ends early, or is larger than "
            f"{LARGEST_CASE_SET >> 20} MiB"
        )
    return np.cumsum(np.frombuffer(steps, dtype="<i4"), dtype=np.int32)


def set_digest(data: bytes) -> str:
    """Return the digest by which equal sets are found, given what `packed` returned."""
    return sha256(zlib.decompress(data)).hexdigest()


def holds(members: Members, case: int) -> bool:
    """Return whether a set has a case."""
    at = int(members.searchsorted(np.int32(case)))  # With another type, NumPy copies the set.
    return at < len(members) and int(members[at]) == case
