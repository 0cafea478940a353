"""Read the options after a backend's name, such as `crash,on=example-1`, and split `NAME=both`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Final

from dmlconf.backends.errors import UnknownChoiceError

__all__ = ["BOTH", "choose", "option_parts", "split_options", "variants_of"]

BOTH: Final = "both"
"""`NAME=both` asks for a run with each of the two values of the option NAME."""


def split_options(text: str) -> tuple[list[str], dict[str, str]]:
    """Return the plain words and the `name=value` options of a comma-separated list.

    Commas are read as in `option_parts`. If an option occurs twice, its last value counts.
    """
    words: list[str] = []
    options: dict[str, str] = {}
    for part in filter(None, option_parts(text)):
        name, equals, value = part.partition("=")
        if equals:
            options[name] = value
        else:
            words.append(name)
    return words, options


def option_parts(text: str) -> list[str]:
    """Split a text at its commas outside brackets: `where=Axis in (1, 2),by=2` has two parts.

    If round and square brackets are not balanced, split it at all commas.
    """
    parts, depth = [""], 0
    for character in text:
        depth += (character in "([") - (character in ")]")
        if depth < 0:
            break
        if character == "," and not depth:
            parts.append("")
        else:
            parts[-1] += character
    return text.split(",") if depth else parts


def choose(what: str, name: str, known: Iterable[str]) -> str:
    """Return the name if it is known.

    Raises:
        UnknownChoiceError: it is not known.
    """
    names = list(known)
    if name in names:
        return name
    raise UnknownChoiceError(what, name, names)


def variants_of(text: str, choices: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """Return the options of each variant that `NAME=both` stands for; empty if no choice is `both`.

    `half=both,adapter=1` gives `half=off,adapter=1` with the key `half=off`, and likewise for `on`.
    Two such options give four variants, with keys such as `metacommands=on,half=off`.

    Args:
        choices: options that may be `both`, with their two values, the default first.
    """
    parts = option_parts(text)
    _, options = split_options(text)
    both = [name for name in choices if options.get(name) == BOTH]
    variants = {}
    for values in product(*(choices[name] for name in both)):
        chosen = {
            f"{name}={BOTH}": f"{name}={value}" for name, value in zip(both, values, strict=True)
        }
        variants[",".join(chosen.values())] = ",".join(chosen.get(part, part) for part in parts)
    return variants if both else {}
