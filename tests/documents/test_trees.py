"""JSON and TOML are read if nesting and numbers are within limits; duplicate keys can be refused.

The tested code is in `dmlconf/documents/trees.py` and `dmlconf/limits.py`.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from dmlconf.documents.trees import TreeError, parsed_json, parsed_toml

NESTED: list[Any] = []
for _ in range(99):
    NESTED = [NESTED]
"""100 levels of lists."""


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (b"[1, 2.5, true, null, {}]", [1, 2.5, True, None, {}]),
        (b"[" * 100 + b"]" * 100, NESTED),
        (b'"' + b"[" * 5000 + b'"', "[" * 5000),
        (b'"' + b"9" * 5000 + b'"', "9" * 5000),
        (b"9" * 400, int("9" * 400)),
        (b"[" + b"[]," * 5000 + b"[]]", [[]] * 5001),
    ],
)
def test_json_within_the_limits_is_read(content: bytes, value: Any) -> None:
    assert parsed_json(content) == value


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[" * 101 + b"]" * 101, "nested deeper than 100 levels"),
        (b'{"a":' * 101 + b"1" + b"}" * 101, "nested deeper than 100 levels"),
        (b"[" * 100_000, "nested deeper than 100 levels"),
        (b"9" * 401, "a number of more than 400 characters"),
        (b"9" * 5000, "a number of more than 400 characters"),
        (b"1." + b"9" * 5000, "a number of more than 400 characters"),
        (b"9" * 199 + b"." + b"9" * 199 + b"e99", "a number of more than 400 characters"),
        (b"[NaN]", "NaN is not JSON"),
        (b"[-Infinity]", "-Infinity is not JSON"),
        (b"[1e999]", "1e999 is larger than FLOAT64 holds"),
        (b"[-1E+0309]", "-1E+0309 is larger than FLOAT64 holds"),
        # About 10**349.
        (b"[" + b"9" * 250 + b"e99]", "is larger than FLOAT64 holds"),
        (b"{", "Expecting property name"),
        (b"\xff", "not UTF-8: byte 0xff"),
        (b"", "Expecting value"),
    ],
)
def test_json_invalid_or_beyond_the_limits_is_refused(content: bytes, problem: str) -> None:
    with pytest.raises(TreeError, match=re.escape(problem)):
        parsed_json(content)


def test_json_duplicate_keys_and_fractions_are_refused_on_demand() -> None:
    twice = b'{"a": 1, "a": 2.5}'
    assert parsed_json(twice) == {"a": 2.5}
    with pytest.raises(TreeError, match="duplicate key"):
        parsed_json(twice, unique=True)
    with pytest.raises(TreeError, match=r"2\.5 is not an integer"):
        parsed_json(twice, whole=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = " + "[" * 40 + "]" * 40, "nested deeper than 40 levels"),
        ("a = " + "[" * 5000, "nested deeper than 40 levels"),
        ("[" + ".".join("a" * 41) + "]", "nested deeper than 40 levels"),
        (".".join("a" * 41) + " = 1", "nested deeper than 40 levels"),
        ("a = " + "9" * 5000, "a number of more than 400 characters"),
        ("a = 0x" + "f" * 500, "a number of more than 400 characters"),
    ],
)
def test_toml_beyond_the_limits_is_refused(text: str, problem: str) -> None:
    with pytest.raises(TreeError, match=problem):
        parsed_toml(text)


def test_toml_within_the_limits_is_read() -> None:
    assert parsed_toml("a = 1\n[b.c]\n") == {"a": 1, "b": {"c": {}}}
    # The table of the file is level 1.
    text = "a = " + "[" * 39 + "]" * 39
    value, levels = parsed_toml(text)["a"], 2
    while value:
        (value,) = value
        levels += 1
    assert levels == 40
    assert parsed_toml("a = " + "9" * 400) == {"a": 10**400 - 1}
    assert parsed_toml("a = 0x" + "f" * 400) == {"a": 16**400 - 1}


def test_toml_error_has_line_and_column() -> None:
    with pytest.raises(TreeError) as caught:
        parsed_toml("a = 1\nb = ?\n")
    assert (caught.value.line, caught.value.column) == (2, 5)
