"""What differs between the headers of two logs, in words: logs of one run differ in nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from dmlconf.backends.subject import device_details
from dmlconf.runner.log import Header

__all__ = ["differences", "environment_differences"]

_ABSENT: Final = "none"


def differences(one: Header, other: Header) -> list[str]:
    """Return what two runs differ in, beside when and where they ran: nothing for one run.

    What one of the logs lacks because an older version wrote it is not compared.

    Args:
        one: the header of a log.
        other: the header of another log, or of a run that would go on with the first.

    Returns:
        for each difference its name and the two values.
    """
    return [*_plan_differences(one, other), *environment_differences(one, other)]


def environment_differences(one: Header, other: Header) -> list[str]:
    """Return what the environments of two runs differ in, beside their places."""
    mine, theirs = _plain(one.environment), _plain(other.environment)
    details = [device_details(environment.pop("details")) for environment in (mine, theirs)]
    for environment in (mine, theirs):
        del environment["backend"]  # The headers name it with its options.
    return [
        *_unequal("", mine, theirs),
        *_unequal("", details[0], details[1]),
    ]


def _plan_differences(one: Header, other: Header) -> Iterator[str]:
    mine, theirs = _plain(asdict(one)), _plain(asdict(other))
    for name, key in _FIELDS.items():
        if mine[key] != theirs[key]:
            yield _difference(name, mine[key], theirs[key])
    yield from _unequal("option ", mine["options"], theirs["options"])
    digests = mine["cases_digest"], theirs["cases_digest"]
    if one.selected != other.selected:
        yield _difference("number of selected cases", one.selected, other.selected)
    elif None not in digests and digests[0] != digests[1]:
        yield "the selected cases"
    if mine["shard"] != theirs["shard"]:
        yield _difference("shard", _shard(one), _shard(other))


_FIELDS: Final = {
    "version of dmlconf": "dmlconf",
    "suite (SHA-256)": "suite_digest",
    "catalogue (SHA-256)": "catalogue_digest",
    "backend": "backend",
    "expected values": "against",
}


def _unequal(prefix: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    return [
        _difference(f"{prefix}{key}", one.get(key), other.get(key))
        for key in sorted(one.keys() | other.keys())
        if one.get(key) != other.get(key)
    ]


def _difference(name: str, one: Any, other: Any) -> str:
    return f"{name}: {_text(one)} there, {_text(other)} here"


def _text(value: Any) -> str:
    if value is None:
        return _ABSENT
    return value if isinstance(value, str) else json.dumps(value)


def _shard(header: Header) -> str | None:
    if header.shard is None:
        return None
    return f"{header.shard['number']}/{header.shard['count']}"


def _plain(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return data as a log gives it back, which has no tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(dict(data), default=str))
    return plain
