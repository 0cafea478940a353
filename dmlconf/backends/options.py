"""The options that stand behind a backend's name: `crash,on=example-1`."""

from __future__ import annotations

from collections.abc import Iterable

from dmlconf.backends.protocol import BackendError
from dmlconf.documents.problems import nearest

__all__ = ["choose", "split_options"]


def split_options(text: str) -> tuple[list[str], dict[str, str]]:
    """Return the plain words and the `name=value` options of a comma-separated list."""
    words: list[str] = []
    options: dict[str, str] = {}
    for part in filter(None, text.split(",")):
        name, equals, value = part.partition("=")
        if equals:
            options[name] = value
        else:
            words.append(name)
    return words, options


def choose(what: str, name: str, known: Iterable[str]) -> str:
    """Return the name, if it is known.

    Raises:
        BackendError: it is not; the message lists the known names and suggests the nearest.
    """
    names = list(known)
    if name in names:
        return name
    near = nearest(name, names)
    hint = f"did you mean {near}?" if near else f"one of {', '.join(names)}"
    raise BackendError(f"there is no {what} {name!r}: {hint}")
