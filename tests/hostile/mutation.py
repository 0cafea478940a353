"""Change some values, words, lines or bytes of a file at random."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable
from random import Random
from typing import Any, Final

__all__ = ["mutated_bytes", "mutated_lines", "mutated_text", "mutated_value", "places_of"]

ODD_NUMBERS: Final[tuple[Any, ...]] = (
    0,
    -1,
    1,
    2,
    3,
    7,
    255,
    256,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    1 << 32,
    (1 << 63) - 1,
    1 << 64,
    -(1 << 63),
    10**30,
    0.5,
    -0.0,
    1e-45,
    1e38,
    1e308,
    1.5e-320,
    math.inf,
    -math.inf,
    math.nan,
)
ODD_TEXTS: Final = (
    "",
    " ",
    "\n",
    "\t",
    "null",
    "true",
    "=",
    "=1",
    "=range(",
    "=[",
    "a" * 300,
    "a" * 20_000,
    "\x1b[31mred",
    "\x00",
    "\x07",
    "\u202e",
    "\u2028",
    "\ufeff",
    "\ufffe",
    "é",
    "字",
    "😀",
    "\udcff",
    "../../etc",
    "/",
    "[bold]",
    "<b>&",
    "]]>",
    "{}",
    "%s%n",
    "=2**9**9",
    "=range(10**9)",
    "=[x for x in range(9999)]",
    "=1/0",
    "=" + "(" * 200,
    "=" + "-" * 5000 + "1",
    "inf",
    "nan",
    "=5",
    "=-1",
    "=1.5",
    "=True",
    "=None",
    "=[1]",
    "=[[1], [2]]",
    "=()",
    "='x'",
    "=''",
)
TOKENS: Final = (
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "**",
    "(",
    ")",
    "[",
    "]",
    ",",
    ":",
    ".",
    "==",
    "<",
    ">=",
    "not",
    "and",
    "or",
    "in",
    "if",
    "else",
    "for",
    "lambda",
    "0",
    "1",
    "2",
    "-1",
    "10**9",
    "1e400",
    "None",
    "True",
    "'a'",
    "range",
    "len",
    "max",
    "min",
    "sum",
    "prod",
    "x",
    "Sizes",
    "{",
    "}",
    "=",
    "all",
)
_TOKEN: Final = re.compile(r"\s+|\w+|[^\w\s]")


def mutated_value(random: Random, data: Any, times: int) -> Any:
    """Return a copy of a JSON-like value with up to `times` changes."""
    root = [copy.deepcopy(data)]
    for _ in range(times):
        places = places_of(root)
        if not places:
            break
        container, key = random.choice(places)
        random.choice(_TREE_CHANGES)(random, container, key)
    return root[0] if root else None


def places_of(root: Any) -> list[tuple[Any, Any]]:
    """Return pairs of a container in JSON-like data and one of its keys; some 5,000 at most."""
    places: list[tuple[Any, Any]] = []
    waiting = [root]
    while waiting and len(places) < 5_000:
        container = waiting.pop()
        if isinstance(container, dict | list):
            keys = range(len(container)) if isinstance(container, list) else list(container)
            places += [(container, key) for key in keys]
            waiting += [container[key] for key in keys]
    return places


def _delete(random: Random, container: Any, key: Any) -> None:
    del container[key]


def _duplicate(random: Random, container: Any, key: Any) -> None:
    if isinstance(container, list):
        times = random.choice((1, 1, 1, 3, 9, 300))
        container[key:key] = [copy.deepcopy(container[key]) for _ in range(times)]
    else:
        container[f"{key}{random.choice(('', '2', ' ', 's'))}"] = copy.deepcopy(container[key])


def _swap(random: Random, container: Any, key: Any) -> None:
    other = random.choice(range(len(container)) if isinstance(container, list) else list(container))
    container[key], container[other] = container[other], container[key]


def _rename(random: Random, container: Any, key: Any) -> None:
    if isinstance(container, dict):
        value = container.pop(key)
        container[random.choice((mutated_text(random, str(key)), random.choice(ODD_TEXTS)))] = value


def _retype(random: Random, container: Any, key: Any) -> None:
    value = container[key]
    container[key] = random.choice(
        (None, True, [], {}, [value], {"a": value}, str(value), [[value]], {"": {}}, [None] * 3)
    )


def _odd_number(random: Random, container: Any, key: Any) -> None:
    container[key] = random.choice(ODD_NUMBERS)


def _odd_text(random: Random, container: Any, key: Any) -> None:
    container[key] = random.choice(ODD_TEXTS)


def _scale(random: Random, container: Any, key: Any) -> None:
    """Multiply a number, or one in a list, and perhaps add 1 or -1; change other values."""
    value = container[key]
    if isinstance(value, list) and value:
        places = [i for i, item in enumerate(value) if type(item) in (int, float)]
        if places:
            _scale(random, value, random.choice(places))
            return
    if type(value) in (int, float):
        factor = random.choice((-1, 2, 3, 16, 1000, 1 << 20, 1 << 40))
        container[key] = value * factor + random.choice((0, 0, 1, -1))
    else:
        _change_text(random, container, key)


def _change_text(random: Random, container: Any, key: Any) -> None:
    value = container[key]
    if isinstance(value, str):
        container[key] = mutated_text(random, value)
    elif type(value) in (int, float):
        container[key] = value + random.choice((1, -1))
    else:
        _retype(random, container, key)


def _nest(random: Random, container: Any, key: Any) -> None:
    value = container[key]
    for _ in range(random.choice((1, 5, 39, 41, 120))):
        value = [value] if random.random() < 0.5 else {"a": value}
    container[key] = value


def _graft(random: Random, container: Any, key: Any) -> None:
    """Put a copy of the container, or of a value in it, in place of the value."""
    keys = range(len(container)) if isinstance(container, list) else list(container)
    container[key] = copy.deepcopy(random.choice((container, container[random.choice(keys)])))


_TREE_CHANGES: Final[tuple[Callable[[Random, Any, Any], None], ...]] = (
    _delete,
    _duplicate,
    _swap,
    _rename,
    _retype,
    _odd_number,
    _odd_text,
    _scale,
    _scale,
    _scale,
    _change_text,
    _change_text,
    _change_text,
    _nest,
    _graft,
)


def mutated_text(random: Random, text: str) -> str:
    tokens = _TOKEN.findall(text) or [""]
    for _ in range(random.choice((1, 1, 2, 4))):
        place = random.randrange(len(tokens))
        change = random.randrange(6)
        if change == 0:
            tokens[place] = ""
        elif change == 1:
            tokens[place] *= random.choice((2, 2, 50))
        elif change == 2:
            other = random.randrange(len(tokens))
            tokens[place], tokens[other] = tokens[other], tokens[place]
        elif change == 3:
            tokens[place] = random.choice(TOKENS)
        elif change == 4:
            tokens.insert(place, random.choice(TOKENS))
        else:
            tokens[place] += chr(
                random.choice((random.randrange(32, 127), random.randrange(0x3000)))
            )
    return "".join(tokens)


def mutated_lines(random: Random, content: bytes) -> bytes:
    lines = content.splitlines(keepends=True) or [b""]
    for _ in range(random.choice((1, 1, 2, 5))):
        place = random.randrange(len(lines))
        change = random.randrange(6)
        if change == 0 and len(lines) > 1:
            del lines[place]
        elif change == 1:
            lines[place:place] = [lines[place]] * random.choice((1, 1, 20))
        elif change == 2:
            lines.insert(random.randrange(len(lines)), lines.pop(place))
        elif change == 3:
            lines[place] = lines[place][: random.randrange(len(lines[place]) + 1)]
        elif change == 4:
            lines[place] = b" " * random.choice((1, 2, 3)) + lines[place]
        else:
            lines[place] = mutated_text(random, lines[place].decode("utf-8", "replace")).encode(
                "utf-8", "surrogatepass"
            )
    return b"".join(lines)


def mutated_bytes(random: Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(random.choice((1, 1, 3, 10))):
        place = random.randrange(len(changed) + 1)
        change = random.randrange(5)
        if change == 0:
            changed[place : place + 1] = bytes([random.randrange(256)])
        elif change == 1:
            changed[place:place] = random.randbytes(random.choice((1, 4, 100)))
        elif change == 2:
            del changed[place : place + random.choice((1, 4, 100))]
        elif change == 3 and random.random() < 0.3:
            del changed[place:]
        elif place < len(changed):
            changed[place] ^= 1 << random.randrange(8)
    return bytes(changed)
