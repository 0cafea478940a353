"""Handles: short names of cases, the same in nearly every run.

`gemm/matrix[DataType=FLOAT16,TransA=NONE]` has the handle `d7fcg`. A handle is the beginning of a
digest of the identifier: five characters, or more if another case of the run has the same five.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping
from hashlib import sha256
from typing import Final

__all__ = [
    "SHORTEST",
    "cases_of_handle",
    "handles",
    "handles_among",
    "handles_in_order",
    "is_handle",
    "longest_handle",
]

SHORTEST: Final = 5
"""The fewest characters of a handle. There are 24 * 32^4 = 25 million of this length."""

_LONGEST: Final = 13
_LETTERS: Final = "abcdefghijkmnpqrstuvwxyz"
_CHARACTERS: Final = _LETTERS + "23456789"
_FORM: Final = re.compile(rf"[{_LETTERS}][{_CHARACTERS}]{{{SHORTEST - 1},{_LONGEST - 1}}}")


def longest_handle(identifier: str) -> str:
    """Return the digest of a case's identifier, 13 characters."""
    number = int.from_bytes(sha256(identifier.encode("utf-8", "surrogatepass")).digest())
    number, first = divmod(number, len(_LETTERS))
    number %= len(_CHARACTERS) ** (_LONGEST - 1)
    text = _LETTERS[first]
    while len(text) < _LONGEST:
        number, at = divmod(number, len(_CHARACTERS))
        text += _CHARACTERS[at]
    return text


def handles(identifiers: Iterable[str]) -> Mapping[str, str]:
    """Return the handle of each case, by identifier; no handle is the beginning of another."""
    digests = {identifier: longest_handle(identifier) for identifier in identifiers}
    in_order = sorted(set(digests.values()))
    lengths: dict[str, int] = {}
    for one, other in zip(["", *in_order], [*in_order, ""], strict=True):
        shared = _length_in_common(one, other)
        for each in (one, other):
            lengths[each] = max(lengths.get(each, SHORTEST), shared + 1)
    return {identifier: text[: lengths[text]] for identifier, text in digests.items()}


def handles_in_order(identifiers: Iterable[str]) -> Iterator[str]:
    """Yield the handle of each case, as `handles` returns it, but keep no identifier in memory."""
    import numpy as np

    digests = bytearray()
    for identifier in identifiers:
        digests += longest_handle(identifier).encode("ascii")
    every = np.frombuffer(digests, f"S{_LONGEST}")
    in_order, indices = np.unique(every, return_inverse=True)
    characters = in_order.view(np.uint8).reshape(-1, _LONGEST)
    shared = np.argmin(characters[1:] == characters[:-1], axis=1)
    lengths = np.full(len(in_order), SHORTEST)
    lengths[1:] = np.maximum(lengths[1:], shared + 1)
    lengths[:-1] = np.maximum(lengths[:-1], shared + 1)
    for at, length in enumerate(lengths[indices].data):
        yield digests[at * _LONGEST : at * _LONGEST + length].decode("ascii")


def handles_among(some: Iterable[str], identifiers: Iterable[str]) -> Mapping[str, str]:
    """Return the handles that `handles` would give to some cases; keep only these in memory."""
    digests = {identifier: longest_handle(identifier) for identifier in some}
    in_order = sorted(digests.values())
    lengths = [SHORTEST] * len(in_order)
    for identifier in identifiers:
        digest = longest_handle(identifier)
        at = bisect_left(in_order, digest)
        own = at < len(in_order) and in_order[at] == digest
        for neighbour in (at - 1, at + 1 if own else at):
            if 0 <= neighbour < len(in_order):
                shared = _length_in_common(digest, in_order[neighbour])
                lengths[neighbour] = max(lengths[neighbour], shared + 1)
    by_digest = dict(zip(in_order, lengths, strict=True))
    return {identifier: text[: by_digest[text]] for identifier, text in digests.items()}


def _length_in_common(one: str, other: str) -> int:
    shared = 0
    while shared < min(len(one), len(other)) and one[shared] == other[shared]:
        shared += 1
    return shared


def is_handle(name: str) -> bool:
    """Return whether a name has the form of a handle."""
    return _FORM.fullmatch(name) is not None


def cases_of_handle(handle: str, identifiers: Collection[str]) -> list[str]:
    """Return the identifiers whose digest begins with a handle; none if it is no handle."""
    if not is_handle(handle):
        return []
    return [each for each in identifiers if longest_handle(each).startswith(handle)]
