"""Find the differences between two logs' headers, to tell whether both logs are of one run."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from dmlconf.backends.subject import device_details
from dmlconf.run_log.log import Header

__all__ = [
    "MODELS_LEFT_OUT",
    "Difference",
    "environment_differences",
    "plan_differences",
    "selection_differences",
    "without_folder",
]


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between two runs, and its value in each, as in JSON."""

    name: str
    one: Any
    other: Any

    def text(self, one: str, other: str) -> str:
        """Return the difference as text, such as `backend: numpy there, directml here`.

        Args:
            one: what follows the first value, such as `there`.
            other: what follows the second value, such as `here`.
        """
        return f"{self.name}: {_text(self.one)} {one}, {_text(self.other)} {other}"


_FIELDS: Final = {
    "version of dmlconf": "dmlconf",
    "suite (SHA-256)": "suite_digest",
    "catalogue (SHA-256)": "catalogue_digest",
    "backend": "backend",
    "expected values": "against",
}
"""The compared fields of headers, by their names in messages."""

MODELS_LEFT_OUT: Final = "models_left_out"
"""The option that says how many cases with the tag `model` the run leaves out by default."""

_COVERED: Final = ("case_list", "failed", "waivers", MODELS_LEFT_OUT)
"""Options that are not compared, since digests of the planned cases and of waivers cover them."""

_FOLDER: Final = re.compile(r"(recording:|path=)[^,]*[/\\]")
"""In a backend's name, the folder of a recording or of `path=`."""


def plan_differences(one: Header, other: Header) -> Iterator[Difference]:
    """Yield the differences between two runs in `_FIELDS`, options and planned cases.

    Options in `_COVERED` are not compared, nor are folders after `recording:` and `path=`. Digests
    of the planned cases are compared if both headers have one and the numbers of cases are equal.
    """
    mine, theirs = _plain(asdict(one)), _plain(asdict(other))
    for name, key in _FIELDS.items():
        if _value_without_folder(mine[key]) != _value_without_folder(theirs[key]):
            yield Difference(name, mine[key], theirs[key])
    options = [
        {key: value for key, value in each["options"].items() if key not in _COVERED}
        for each in (mine, theirs)
    ]
    yield from _unequal("option ", *options)
    if one.planned != other.planned:
        yield Difference("planned cases", one.planned, other.planned)
    elif None not in (digests := (one.plan_digest, other.plan_digest)) and len(set(digests)) > 1:
        yield Difference("planned cases (SHA-256)", *digests)


def selection_differences(one: Header, other: Header) -> Iterator[Difference]:
    """Yield the difference between the parts of a plan that two runs took, if there is one.

    Shards are compared by number, count and whether they are balanced. The numbers of cases are
    compared only in equal shards.
    """
    shards = [_shard(header) for header in (one, other)]
    if shards[0] != shards[1]:
        yield Difference("shard", *shards)
    elif one.selected != other.selected:
        yield Difference("cases of the shard", one.selected, other.selected)


def environment_differences(one: Header, other: Header) -> Iterator[Difference]:
    """Yield the differences between the environments of two runs.

    Only details that `device_details` returns are compared. Folders after `recording:` and `path=`
    are not.
    """
    mine, theirs = _plain(one.environment), _plain(other.environment)
    details = [device_details(environment.pop("details")) for environment in (mine, theirs)]
    for environment in (mine, theirs):
        del environment["backend"]  # The header's `backend` has the name and its options.
    yield from _unequal("", mine, theirs)
    yield from _unequal("", *details)


def _unequal(prefix: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[Difference]:
    for key in sorted(one.keys() | other.keys()):
        if _value_without_folder(one.get(key)) != _value_without_folder(other.get(key)):
            yield Difference(f"{prefix}{key}", one.get(key), other.get(key))


def without_folder(backend: str) -> str:
    """Return a backend's name without the folders after `recording:` and `path=`."""
    return _FOLDER.sub(r"\1", backend)


def _value_without_folder(value: Any) -> Any:
    return without_folder(value) if isinstance(value, str) else value


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value)


def _shard(header: Header) -> str | None:
    if header.shard is None:
        return None
    balance = ", balanced" if "balanced_by" in header.shard else ""
    return f"{header.shard['number']}/{header.shard['count']}{balance}"


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return data as read from a log: lists instead of tuples, and text for paths."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(data), default=str))
    return plain
