"""Make JSON, TOML, expressions, graphs and archives that are too deep, too long or of wrong kinds.

Most are well-formed, so that they pass the first check of a reader.
"""

from __future__ import annotations

import io
import json
import re
import struct
import zipfile
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from tests.hostile.mutation import places_of

__all__ = [
    "METHODS",
    "archived",
    "expression",
    "keywords",
    "node_graph",
    "structured_json",
    "toml",
    "with_other_kinds",
]

METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)

_MARK: Final = "\ue000"
"""A text that an odd value replaces."""
_DEPTHS: Final = (5, 39, 41, 99, 101, 300, 500, 900, 5000, 100_000)
"""`dmlconf.limits` permits 40 levels of YAML and 100 of JSON."""
_DIGITS: Final = (18, 20, 39, 309, 400, 401, 4300, 4301, 5000, 50_000)
"""`dmlconf.limits` permits 400 characters in a number, and Python 4,300 digits in an integer."""

KINDS: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1.5,
    -0.0,
    2**31,
    2**63,
    2**64,
    10**30,
    "",
    "x",
    "inf",
    "nan",
    "0",
    "FLOAT32 2",
    "FLOAT99 2",
    "FLOAT32 2x",
    "FLOAT16 2x3 strides=1x1x1",
    "2x3",
    [],
    {},
    [1],
    ["x"],
    [1.5],
    [[1]],
    ["FLOAT32 2"],
    [None],
    {"a": 1},
    {"operator": "TILE"},
    {"operator": 3},
    [{}],
    "passed",
    "GATHER",
    "2026-01-01T00:00:00+00:00",
    "6_4",
    "0" * 64,
    "\u2028",
    "\x1b[0m",
    "a\nb",
)


def with_other_kinds(random: Random, data: Any, times: int) -> Any:
    """Replace up to `times` values in JSON-like data by values of other kinds, and return it."""
    for _ in range(times):
        places = list(places_of(data))
        if not places:
            return data
        container, key = random.choice(places)
        container[key] = random.choice(KINDS)
    return data


def structured_json(random: Random, data: Any) -> bytes:
    places = places_of(data)
    if places:
        container, key = random.choice(places)
        container[key] = _MARK
    text = json.dumps(data, ensure_ascii=False)
    return text.replace(f'"{_MARK}"', _raw(random)).encode("utf-8", "surrogatepass")


def _raw(random: Random) -> str:
    kind = random.randrange(6)
    depth, digits = random.choice(_DEPTHS), random.choice(_DIGITS)
    if kind == 0:
        return "[" * depth + "]" * depth
    if kind == 1:
        return '{"a":' * depth + "1" + "}" * depth
    if kind == 2:
        return random.choice(("", "-")) + "9" * digits
    if kind == 3:
        return "0." + "9" * digits + random.choice(("", "e5", "e-400", "e400", "E+99999"))
    if kind == 4:
        return random.choice(("NaN", "Infinity", "-Infinity", "1e999", "-1e999", '"\\ud800"'))
    return "[" + ",".join(["[]"] * random.choice((10, 1000, 100_000))) + "]"


def toml(random: Random, settings: Mapping[str, Any]) -> str:
    lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
    for _ in range(random.choice((1, 1, 2, 4))):
        place = random.randrange(len(lines) + 1)
        depth, digits = random.choice(_DEPTHS), random.choice(_DIGITS)
        name = random.choice((*settings, "x", '"a b"', "run", "profile", "tool"))
        lines.insert(
            place,
            random.choice(
                (
                    f"{name} = " + "[" * depth + "]" * depth,
                    f"{name} = " + "{a=" * depth + "1" + "}" * depth,
                    f"{name} = " + "9" * digits,
                    f"{name} = 0x" + "f" * digits,
                    f"{name} = 1.{'9' * digits}e{digits}",
                    "[" + ".".join(["a"] * min(depth, 5000)) + "]",
                    ".".join(["a"] * min(depth, 5000)) + " = 1",
                    f"[{name}]",
                    f"[[{name}]]",
                    f"[profile.{name}]",
                    f"[{random.choice(('run', 'list', 'fuzz', 'nothing'))}]",
                    f"{name} = {json.dumps(random.choice(KINDS[1:]))}",
                    f"{name} = 1979-05-27T07:32:00Z",
                    f"{name} = '''" + "x" * digits,
                    f'{name} = "\\u{digits:04x}"',
                )
            ),
        )
    return "\n".join(lines) + "\n"


_ATOMS: Final = (
    "0",
    "1",
    "2",
    "-1",
    "4096",
    "1.5",
    "1e308",
    "'x'",
    "''",
    "None",
    "True",
    "()",
    "(1,)",
    "[1, 2]",
    "a",
    "b",
    "c",
    "Sizes",
    "Rank",
    "DataType",
    "InputTensor.Sizes",
    "OutputTensor",
    "Repeats",
    "InputTensor.Strides",
    "InputTensor.ElementCount",
    "9" * 300,
    "'" + "y" * 500 + "'",
)
_CALLS: Final = (
    "abs",
    "all",
    "any",
    "drop_leading_ones",
    "enumerate",
    "exactly_one",
    "first_present",
    "len",
    "max",
    "min",
    "ones",
    "present",
    "product",
    "range",
    "reversed",
    "right_aligned",
    "same",
    "sorted",
    "starts_with",
    "sum",
    "tuple",
    "zip",
)
_OPERATORS: Final = (
    "+",
    "-",
    "*",
    "//",
    "/",
    "%",
    "&",
    "==",
    "<",
    "in",
    "not in",
    "is",
    "and",
    "or",
)


def expression(random: Random, depth: int = 4) -> str:
    if depth == 0:
        return random.choice(_ATOMS)
    kind = random.randrange(9)
    first, second = (expression(random, depth - 1) for _ in range(2))
    if kind == 0:
        return f"({first} {random.choice(_OPERATORS)} {second})"
    if kind in (1, 2):
        name = random.choice("abc")
        source = random.choice((f"range({random.choice((9, 300, 4096))})", first))
        more = random.choice(("", f" for b in range({random.choice((9, 4096))})", f" if {second}"))
        return f"{random.choice(_CALLS)}({second} for {name} in {source}{more})"
    if kind == 3:
        return f"{random.choice(_CALLS)}({first}, {second})"
    if kind == 4:
        return f"{random.choice(_CALLS)}({first})"
    if kind == 5:
        return f"({first}, {second})"
    if kind == 6:
        return f"{first}[{random.choice(('0', '-1', '1:', ':99', '::2', second))}]"
    if kind == 7:
        return f"({first} if {second} else {first})"
    return f"{random.choice(('range', 'ones', 'tuple'))}({random.choice(_ATOMS)})"


def keywords(random: Random) -> str:
    """Return an expression of `-k`, well-formed or nearly so."""
    count = random.choice((1, 3, 300, 5000))
    words = ("tile", "x", '"a b"', "'('", "TILE", "not", "and", "or", "(", ")", '"', "é", "\u202e")
    return random.choice(
        (
            "(" * count + "tile" + ")" * random.choice((count, count, count - 1, count + 1)),
            "not " * count + "tile",
            " or ".join(["tile"] * count),
            " and ".join(["not (tile)"] * count),
            "(not " * count + "tile" + ")" * count,
            " ".join(random.choice(words) for _ in range(count)),
            "x" * count * 30,
        )
    )


def node_graph(random: Random) -> str:
    """Return a case file of a graph of 2 to 2,000 nodes: a chain, cycle, fan, or random."""
    count = random.choice((2, 30, 300, 1000, 2000))
    form = random.randrange(6)
    feeders: Callable[[int], str]
    if form == 0:
        feeders = lambda n: f"n{n + 1}" if n + 1 < count else "x"  # noqa: E731
    elif form == 1:
        feeders = lambda n: f"n{(n + 1) % count}"  # noqa: E731
    elif form == 2:
        feeders = lambda n: f"n{n - 1}" if n else "x"  # noqa: E731
    elif form == 3:
        feeders = lambda n: "x" if n == count - 1 else f"n{count - 1}"  # noqa: E731
    else:
        feeders = lambda n: random.choice(("x", f"n{random.randrange(count)}"))  # noqa: E731
    nodes = "".join(
        f"      n{n}: {{operator: ELEMENT_WISE_{random.choice(('IDENTITY', 'IDENTITY', 'ABS'))}, "
        f"desc: {{InputTensor: {feeders(n)}, OutputTensor: {{}}}}}}\n"
        for n in range(count)
    )
    return (
        "graph: mutants\ncases:\n  - name: large\n"
        "    inputs: {x: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [1, 2]}}\n"
        f"    nodes:\n{nodes}    outputs: {{y: n{random.randrange(count)}}}\n"
    )


def archived(random: Random, members: Mapping[str, bytes]) -> bytes:
    """Return an archive of these members, packed by random methods, with one or two errors."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            if random.random() < 0.05:
                content = b"0" * random.choice((1 << 20, 1 << 26))
            entry = zipfile.ZipInfo(name)
            archive.writestr(entry, content, random.choice(METHODS))
    packed = bytearray(stream.getvalue())
    for _ in range(random.choice((1, 1, 2))):
        _damage(random, packed)
    return bytes(packed)


def _damage(random: Random, content: bytearray) -> None:
    entries = [each.start() for each in re.finditer(rb"PK\x01\x02", content[:-43])]
    if not entries:
        return
    at = random.choice(entries)
    [local] = struct.unpack_from("<I", content, at + 42)
    kind = random.randrange(6)
    if kind == 0:  # Sizes and checksums.
        field = random.choice((16, 20, 24))
        number = random.choice((0, 1, 1000, 1 << 20, 1 << 28, 0xFFFF_FFFE, 0xFFFF_FFFF))
        struct.pack_into("<I", content, at + field, number)
    elif kind == 1:  # The method, in one place or in both.
        method = random.choice((0, 8, 9, 12, 14, 93, 99))
        struct.pack_into("<H", content, at + 10, method)
        if random.random() < 0.5 and local + 10 <= len(content):
            struct.pack_into("<H", content, local + 8, method)
    elif kind == 2:  # Flags, such as encrypted.
        struct.pack_into("<H", content, at + 8, random.choice((1, 8, 32, 64, 0x800, 0xFFFF)))
    elif kind == 3:  # The offset of the member.
        struct.pack_into("<I", content, at + 42, random.choice((0, 5, len(content), 0xFFFF_FFFF)))
    else:  # The packed bytes.
        [size] = struct.unpack_from("<I", content, at + 20)
        for _ in range(random.choice((1, 3, 20))):
            place = local + 30 + random.randrange(size + 20)
            if place < len(content):
                content[place] ^= 1 << random.randrange(8)
