"""The reader takes a safe subset of YAML, and refuses tags, merge keys and huge files.

The tested code is in `dmlconf/documents/reader.py`, `dmlconf/documents/files.py` and
`dmlconf/documents/problems.py`.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.documents.reader import read_document
from dmlconf.limits import DEEPEST_DOCUMENT, LARGEST_DOCUMENT
from tests.documents.refusals import refusal, shown, write


def read(directory: Path, content: str | bytes) -> Any:
    return read_document(write(directory, content)).data


SCALAR_VALUES: list[tuple[str, Any]] = [
    ("", None),
    ("~", None),
    ("null", None),
    ("Null", None),
    ("NULL", None),
    ("nULL", "nULL"),
    ("true", True),
    ("True", True),
    ("TRUE", True),
    ("false", False),
    ("False", False),
    ("FALSE", False),
    ("tRUE", "tRUE"),
    ("yes", "yes"),
    ("no", "no"),
    ("on", "on"),
    ("Off", "Off"),
    ("y", "y"),
    ("N", "N"),
    ("0", 0),
    ("12", 12),
    ("+3", 3),
    ("-7", -7),
    ("017", 17),
    ("18446744073709551615", 2**64 - 1),
    ("0x1F", 31),
    ("0xff", 255),
    ("0o17", 15),
    ("0x", "0x"),
    ("0xG", "0xG"),
    ("0x_1", "0x_1"),
    ("-0x1", "-0x1"),
    ("0o8", "0o8"),
    ("0b11", "0b11"),
    ("1_000", "1_000"),
    ("4_1", "4_1"),
    ("1.", 1.0),
    (".5", 0.5),
    ("+.5", 0.5),
    ("-0.25", -0.25),
    ("1e3", 1000.0),
    ("1e-2", 0.01),
    ("6.02E+23", 6.02e23),
    ("1e", "1e"),
    (".", "."),
    (".e1", ".e1"),
    ("1.5.2", "1.5.2"),
    (".inf", math.inf),
    (".Inf", math.inf),
    (".INF", math.inf),
    ("+.inf", math.inf),
    ("-.inf", -math.inf),
    ("-.INF", -math.inf),
    ("inf", "inf"),
    ("nan", "nan"),
    ("-.nan", "-.nan"),
    ("1:30", "1:30"),
    ("2001-01-01", "2001-01-01"),
    ("=", "="),
    ("1,000", "1,000"),
    ("\uff11", "\uff11"),
    ('"5"', "5"),
    ("'true'", "true"),
    ('""', ""),
    ("'~'", "~"),
]


@pytest.mark.parametrize(("text", "value"), SCALAR_VALUES)
def test_scalars_follow_the_core_schema(tmp_path: Path, text: str, value: Any) -> None:
    actual = read(tmp_path, f"a: {text}\n")["a"]
    assert actual == value
    assert type(actual) is type(value)


@pytest.mark.parametrize("text", [".nan", ".NaN", ".NAN"])
def test_nan_is_read(tmp_path: Path, text: str) -> None:
    assert math.isnan(read(tmp_path, f"a: {text}\n")["a"])


@pytest.mark.parametrize("text", ["-0", "-00", "-0.0", "-0e5"])
def test_negative_zero_is_read_as_a_float(tmp_path: Path, text: str) -> None:
    actual = read(tmp_path, f"a: {text}\n")["a"]
    assert isinstance(actual, float)
    assert math.copysign(1, actual) == -1


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Co", "Cf"]), max_size=20)
)
KEYS = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=8).filter("<<".__ne__)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)
)


def in_flow_style(value: Any) -> str:
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(f"{in_flow_style(k)}: {in_flow_style(v)}" for k, v in value.items())
            + "}"
        )
    if isinstance(value, list):
        return "[" + ", ".join(map(in_flow_style, value)) + "]"
    if isinstance(value, str):
        escaped = "".join(f"\\U{ord(c):08x}" if c in '"\\' else c for c in value)
        return f'"{escaped}"'
    if isinstance(value, float) and math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    named = {None: "null", True: "true", False: "false"}
    return named[value] if value is None or isinstance(value, bool) else repr(value)


@pytest.mark.slow
@given(st.dictionaries(KEYS, VALUES, min_size=1))
def test_values_written_as_yaml_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, Any]
) -> None:
    directory = tmp_path_factory.getbasetemp()
    # Unlike ==, `repr` tells 1 from 1.0 and True.
    assert repr(read(directory, in_flow_style(values))) == repr(values)


def test_keys_are_always_text(tmp_path: Path) -> None:
    actual = read(tmp_path, "1: a\nnull: b\ntrue: c\n0x10: d\n")
    assert actual == {"1": "a", "null": "b", "true": "c", "0x10": "d"}


def test_keys_keep_their_order(tmp_path: Path) -> None:
    assert list(read(tmp_path, "b: 1\na: 2\nc: 3\n")) == ["b", "a", "c"]


def test_alias_stands_for_the_value_of_its_anchor(tmp_path: Path) -> None:
    actual = read(tmp_path, "a: &x {b: [1, 2]}\nc: *x\nd: [*x, *x]\n")
    assert actual == {"a": {"b": [1, 2]}, "c": {"b": [1, 2]}, "d": [{"b": [1, 2]}] * 2}


def test_byte_order_mark_and_crlf_are_read(tmp_path: Path) -> None:
    document = read_document(write(tmp_path, b"\xef\xbb\xbfa: 1\r\nb:\r\n  - 2\r\n  - x y\r\n"))
    assert document.data == {"a": 1, "b": [2, "x y"]}
    assert document.item_lines == {"b": [3, 4]}


def test_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    text = "a: 1\n#".ljust(LARGEST_DOCUMENT, "x")
    assert read(tmp_path, text) == {"a": 1}


def test_lists_at_the_deepest_level_are_read(tmp_path: Path) -> None:
    value = read(tmp_path, "[" * DEEPEST_DOCUMENT + "]" * DEEPEST_DOCUMENT)
    levels = 1
    while value:
        (value,) = value
        levels += 1
    assert levels == DEEPEST_DOCUMENT


BILLION_LAUGHS = "a: &a [ha, ha, ha, ha, ha, ha, ha, ha, ha]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)
"""Each list but the first holds the one before it 9 times, so `g` expands to 9**7 values."""

LADDER = "a0: &a0 [1]\n" + "".join(f"a{i}: &a{i} [*a{i - 1}]\n" for i in range(1, 3000))

REFUSED: dict[str, tuple[str | bytes, str]] = {
    "a duplicate key": (
        "a: 1\nb:\n  cd: 1\n  cd: 2\n",
        """
        f.yaml:4:3: key `cd` is given twice
             4 |   cd: 2
               |   ^^
            hint: the second would silently replace the first: remove one
        """,
    ),
    "every duplicate key": (
        "a: {b: 1, 'b': 2}\na: 1\n",
        """
        f.yaml:1:11: key `b` is given twice
             1 | a: {b: 1, 'b': 2}
               |           ^^^
            hint: the second would silently replace the first: remove one
        f.yaml:2:1: key `a` is given twice
             2 | a: 1
               | ^
            hint: the second would silently replace the first: remove one
        """,
    ),
    "a billion laughs": (
        BILLION_LAUGHS,
        """
        f.yaml:7:12: the file expands to more than 1,000,000 values
             7 | g: &g [*f, *f, *f, *f, *f, *f, *f, *f, *f]
               |            ^
            hint: use fewer aliases, or a fill instead of long lists
        """,
    ),
    "a ladder of aliases": (
        LADDER,
        """
        f.yaml:40:12: nested deeper than 40 levels
            40 | a39: &a39 [*a38]
               |            ^
        """,
    ),
    "a list that holds itself": (
        "a: &a [1, *a]\n",
        """
        f.yaml:1:11: alias *a has no anchor before it
             1 | a: &a [1, *a]
               |           ^
        """,
    ),
    "a mapping that holds itself": (
        "a: &a\n  b: *a\n",
        """
        f.yaml:2:6: alias *a has no anchor before it
             2 |   b: *a
               |      ^
        """,
    ),
    "an unknown alias": (
        "a: *nowhere\n",
        """
        f.yaml:1:4: alias *nowhere has no anchor before it
             1 | a: *nowhere
               |    ^
        """,
    ),
    "a tag of Python": (
        "a: 1\nb: !!python/object/apply:os.system [ls]\n",
        """
        f.yaml:2:4: tag tag:yaml.org,2002:python/object/apply:os.system is not allowed
             2 | b: !!python/object/apply:os.system [ls]
               |    ^
            hint: leave the tag out
        """,
    ),
    "a local tag": (
        "a:\n  - !foo bar\n",
        """
        f.yaml:2:5: tag !foo is not allowed
             2 |   - !foo bar
               |     ^
            hint: leave the tag out
        """,
    ),
    "a tag of the core schema": (
        "a: !!str 5\n",
        """
        f.yaml:1:4: tag tag:yaml.org,2002:str is not allowed
             1 | a: !!str 5
               |    ^
            hint: leave the tag out
        """,
    ),
    "a tag with a handle": (
        "%TAG !e! tag:example.com,2000:\n---\na: !e!x {}\n",
        """
        f.yaml:3:4: tag tag:example.com,2000:x is not allowed
             3 | a: !e!x {}
               |    ^
            hint: leave the tag out
        """,
    ),
    "a tagged key": (
        "!!str a: 1\n",
        """
        f.yaml:1:1: a key must be plain text
             1 | !!str a: 1
               | ^
        """,
    ),
    "a list as a key": (
        "? [a, b]\n: 1\n",
        """
        f.yaml:1:3: a key must be plain text
             1 | ? [a, b]
               |   ^
        """,
    ),
    "an alias as a key": (
        "a: &x k\n*x : 2\n",
        """
        f.yaml:2:1: a key must be plain text
             2 | *x : 2
               | ^
        """,
    ),
    "a merge key": (
        "x: &x {a: 1}\ny:\n  <<: *x\n  b: 2\n",
        """
        f.yaml:3:3: merge keys are not allowed
             3 |   <<: *x
               |   ^^
            hint: write out the keys that it stands for
        """,
    ),
    "Latin-1": (
        b"a: 1\nb: caf\xe9 au lait\n",
        """
        f.yaml:2:7: is not UTF-8: byte 0xe9
             2 | b: caf\ufffd au lait
               |       ^
            hint: save the file as UTF-8
        """,
    ),
    "Latin-1 after a byte order mark": (
        b"\xef\xbb\xbfa: caf\xe9 au lait\n",
        """
        f.yaml:1:7: is not UTF-8: byte 0xe9
             1 | a: caf\ufffd au lait
               |       ^
            hint: save the file as UTF-8
        """,
    ),
    "UTF-16": (
        "a: 1".encode("utf-16-le"),
        r"""
        f.yaml:1:2: character '\x00' is not allowed in YAML
             1 | a\x00:\x00 \x001\x00
               |  ^
            hint: write it as an escape in double quotes, such as "\x1b"
        """,
    ),
    "a surrogate in UTF-8": (
        b"a: \xed\xa0\x80\n",
        """
        f.yaml:1:4: is not UTF-8: byte 0xed
             1 | a: \ufffd\ufffd\ufffd
               |    ^
            hint: save the file as UTF-8
        """,
    ),
    "an empty file": ("", "f.yaml: the file is empty"),
    "only comments": ("# one\n\n  # two\n", "f.yaml: the file is empty"),
    "only the beginning of a document": ("---\n", "f.yaml: the file is empty"),
    "null": ("null\n", "f.yaml: the file is empty"),
    "two documents": (
        "a: 1\n---\nb: 2\n",
        """
        f.yaml:2:1: a second YAML document begins; one file holds one
             2 | ---
               | ^
        """,
    ),
    "two documents with an end between them": (
        "a: 1\n...\n# more\n---\nb: 2\n",
        """
        f.yaml:4:1: a second YAML document begins; one file holds one
             4 | ---
               | ^
        """,
    ),
    "deep nesting in lists": (
        "a: " + "[" * 60 + "]" * 60,
        f"""
        f.yaml:1:43: nested deeper than 40 levels
             1 | a: {"[" * 60}{"]" * 37}
               | {" " * 42}^
        """,
    ),
    "deep nesting in mappings": (
        "\n".join(f"{' ' * level}k:" for level in range(50)),
        f"""
        f.yaml:41:41: nested deeper than 40 levels
            41 | {" " * 40}k:
               | {" " * 40}^
        """,
    ),
    "an escape character": (
        'a: 1\nb: "x\x1b[31m"\n',
        r"""
        f.yaml:2:6: character '\x1b' is not allowed in YAML
             2 | b: "x\x1b[31m"
               |      ^
            hint: write it as an escape in double quotes, such as "\x1b"
        """,
    ),
    "a null character": (
        "a: \x00\n",
        r"""
        f.yaml:1:4: character '\x00' is not allowed in YAML
             1 | a: \x00
               |    ^
            hint: write it as an escape in double quotes, such as "\x1b"
        """,
    ),
    "a control character of 8 bits": (
        "a: 1\r\nb: x\x9b1A\r\n",
        r"""
        f.yaml:2:5: character '\x9b' is not allowed in YAML
             2 | b: x\x9b1A
               |     ^
            hint: write it as an escape in double quotes, such as "\x1b"
        """,
    ),
    "a code point that is no character": (
        "a: \ufffe\n",
        r"""
        f.yaml:1:4: character '\ufffe' is not allowed in YAML
             1 | a: \ufffe
               |    ^
            hint: write it as an escape in double quotes, such as "\x1b"
        """,
    ),
    "a number that no data type holds": (
        "a: [1, 1e400]\n",
        """
        f.yaml:1:8: 1e400 is larger than any FLOAT64; infinity is written .inf
             1 | a: [1, 1e400]
               |        ^^^^^
        """,
    ),
    "a number of very many digits": (
        "a: " + "1" * 5000,
        f"""
        f.yaml:1:4: a number of more than 400 characters
             1 | a: {"1" * 97}
               |    {"^" * 97}
        """,
    ),
    "a line indented by a tab": (
        "a:\n\tb: 1\n",
        r"""
        f.yaml:2:1: while scanning for the next token: found character that cannot start any token
             2 | \tb: 1
               | ^
            hint: YAML indents by spaces; there is a tab here
        """,
    ),
    "a list without its end": (
        "a: [1, 2\nb: 3\n",
        """
        f.yaml:2:2: while parsing a flow sequence: did not find expected ',' or ']'
             2 | b: 3
               |  ^
        """,
    ),
    "a mapping within a line": (
        "a: b: c\n",
        """
        f.yaml:1:5: mapping values are not allowed in this context
             1 | a: b: c
               |     ^
        """,
    ),
    "another version of YAML": (
        "%YAML 2.0\n---\na: 1\n",
        """
        f.yaml:1:1: found incompatible YAML document
             1 | %YAML 2.0
               | ^
        """,
    ),
    "a mistake in a file that Windows wrote": (
        b"\xef\xbb\xbfa: 1\r\n\r\na: 2\r\n",
        """
        f.yaml:3:1: key `a` is given twice
             3 | a: 2
               | ^
            hint: the second would silently replace the first: remove one
        """,
    ),
    "a mistake in the first line behind a byte order mark": (
        b"\xef\xbb\xbfa: !x 1\n",
        """
        f.yaml:1:4: tag !x is not allowed
             1 | a: !x 1
               |    ^
            hint: leave the tag out
        """,
    ),
    "a mistake behind line ends other than a newline": (
        'a: "x\u2028y\x85z"\rb: 1\rb: 2',
        """
        f.yaml:5:1: key `b` is given twice
             5 | b: 2
               | ^
            hint: the second would silently replace the first: remove one
        """,
    ),
    "a name that reorders text": (
        '"a\u202eb": 1\n"a\u202eb": 2\n',
        r"""
        f.yaml:2:1: key `a\u202eb` is given twice
             2 | "a\u202eb": 2
               | ^^^^^
            hint: the second would silently replace the first: remove one
        """,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_or_invalid_yaml_is_refused(tmp_path: Path, name: str) -> None:
    content, message = REFUSED[name]
    path = write(tmp_path, content)
    assert refusal(lambda: read_document(path), tmp_path) == shown(message)


def test_too_large_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    with path.open("wb") as file:
        file.truncate(LARGEST_DOCUMENT + 1)
    assert refusal(lambda: read_document(path), tmp_path) == shown(
        """
        f.yaml: is 4,194,305 bytes long; at most 4,194,304 are read
            hint: split the file, or use a fill instead of long lists
        """
    )


def test_million_open_brackets_are_refused_without_a_crash(tmp_path: Path) -> None:
    path = write(tmp_path, "[" * 1_000_000)
    message = refusal(lambda: read_document(path), tmp_path)
    # The column depends on the version of PyYAML.
    assert re.match(r"f\.yaml:1:(41|1001): nested deeper than 40 levels\n", message)


def test_run_log_is_refused_by_what_it_is(tmp_path: Path) -> None:
    path = write(tmp_path, '{"record":"header"}\n{"record":"verdict"}\n', "run.jsonl")
    assert refusal(lambda: read_document(path), tmp_path) == shown(
        """
        run.jsonl: is a run log, to judge by its name, not a YAML file
            hint: `dmlconf report LOG` shows it, `dmlconf run --failed LOG` repeats what failed
        """
    )


def test_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    message = refusal(lambda: read_document(path), tmp_path)
    assert message == "none.yaml: cannot be read: No such file or directory"


def test_folder_is_refused(tmp_path: Path) -> None:
    message = "is a folder, not a regular file"
    assert message in refusal(lambda: read_document(tmp_path), tmp_path.parent)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_named_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    path = tmp_path / "pipe.yaml"
    os.mkfifo(path)
    message = refusal(lambda: read_document(path), tmp_path)
    assert message == "pipe.yaml: is a named pipe, not a regular file"
