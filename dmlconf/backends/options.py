"""The options that stand behind a backend's name: `crash,on=example-1`."""

from __future__ import annotations

from collections.abc import Iterable

from dmlconf.backends.errors import UnknownChoiceError

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
        UnknownChoiceError: it is not; the message lists the known names and suggests the nearest.
    """
    names = list(known)
    if name in names:
        return name
    raise UnknownChoiceError(what, name, names)
