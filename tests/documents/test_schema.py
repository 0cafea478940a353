"""Documents are checked against JSON Schemas, and problems point at their line.

The tested code is in `dmlconf/documents/schema.py` and `schemas/`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dmlconf.documents.problems import InvalidFilesError
from dmlconf.documents.reader import read_document
from dmlconf.documents.schema import bundled_schema, schema_problems, validator
from dmlconf.resources import schemas_directory
from tests.documents.refusals import shown, write

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["operator", "cases"],
    "additionalProperties": False,
    "properties": {
        "operator": {"type": "string", "description": "the operator's name"},
        "cases": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/case"}},
        "level": {"type": "string", "pattern": "^[0-9]_[0-9]$", "description": "a level like 4_1"},
        "code": {"type": "string", "pattern": "^X"},
        "kind": {"enum": ["product", "pairwise"]},
        "size": {"type": ["integer", "null"], "minimum": 0},
        "most": {"type": "array", "maxItems": 2, "uniqueItems": True},
        "parts": {"type": "object", "minProperties": 1},
        "version": {"const": 3},
        "pair": {"not": {"required": ["a", "b"]}},
        "either": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]},
    },
    "$defs": {
        "case": {
            "title": "a case",
            "type": "object",
            "additionalProperties": False,
            "required": ["desc"],
            "properties": {"name": {"type": "string"}, "desc": {"type": "object"}},
        }
    },
}

VALID = "operator: A\ncases:\n  - desc: {}\n"

REFUSED: dict[str, tuple[str, str]] = {
    "text where a mapping belongs": (
        "just text\n",
        """
        f.yaml:1:1: the file must be a mapping, not "just text"
             1 | just text
               | ^^^^^^^^^
        """,
    ),
    "a list where a mapping belongs": (
        "- 1\n- 2\n",
        """
        f.yaml:1:1: the file must be a mapping, not [1, 2]
             1 | - 1
               | ^
        """,
    ),
    "every field that is missing": (
        "# nothing\nkind: product\n",
        """
        f.yaml:2:1: `operator` is missing
             2 | kind: product
               | ^
            hint: the operator's name
        f.yaml:2:1: `cases` is missing
             2 | kind: product
               | ^
        """,
    ),
    "a field that is missing within": (
        "operator: A\ncases:\n  - name: a\n",
        """
        f.yaml:3:5: `cases[0]` lacks `desc`
             3 |   - name: a
               |     ^
        """,
    ),
    "an unknown field near a known one": (
        VALID + "leval: '4_1'\n",
        """
        f.yaml:4:1: unknown field `leval` in the file
             4 | leval: '4_1'
               | ^^^^^
            hint: did you mean `level`?
        """,
    ),
    "an unknown field of a part with a title": (
        "operator: A\ncases:\n  - {desc: {}, zzz: 1}\n",
        """
        f.yaml:3:16: unknown field `zzz` in a case
             3 |   - {desc: {}, zzz: 1}
               |                ^^^
            hint: known here: name, desc
        """,
    ),
    "an unknown field whose neighbour is there already": (
        VALID + "case: 1\n",
        """
        f.yaml:4:1: unknown field `case` in the file
             4 | case: 1
               | ^^^^
            hint: known here: operator, cases, level, code, kind, size, \
most, parts, version, pair, either
        """,
    ),
    "every unknown field": (
        VALID + "sizes: 1\nkinds: 2\n",
        """
        f.yaml:4:1: unknown field `sizes` in the file
             4 | sizes: 1
               | ^^^^^
            hint: did you mean `size`?
        f.yaml:5:1: unknown field `kinds` in the file
             5 | kinds: 2
               | ^^^^^
            hint: did you mean `kind`?
        """,
    ),
    "a value of another type": (
        "operator: [a, 1.5, null]\ncases: [{desc: {}}]\n",
        """
        f.yaml:1:11: `operator` must be text, not ["a", 1.5, null]
             1 | operator: [a, 1.5, null]
               |           ^^^^^^^^^^^^^^
        """,
    ),
    "a value of none of several types": (
        VALID + "size: 1.5\n",
        """
        f.yaml:4:7: `size` must be a whole number or nothing, not 1.5
             4 | size: 1.5
               |       ^^^
        """,
    ),
    "a value that is too long to show": (
        f"operator: [{'x' * 90}]\ncases: [{{desc: {{}}}}]\n",
        f"""
        f.yaml:1:11: `operator` must be text, not ["{"x" * 55}...
             1 | operator: [{"x" * 89}
               |           {"^" * 90}
        """,
    ),
    "a word near one of the known": (
        VALID + "kind: pairwize\n",
        """
        f.yaml:4:7: `kind` cannot be "pairwize"
             4 | kind: pairwize
               |       ^^^^^^^^
            hint: did you mean pairwise?
        """,
    ),
    "a word far from the known": (
        VALID + "kind: 7\n",
        """
        f.yaml:4:7: `kind` cannot be 7
             4 | kind: 7
               |       ^
            hint: one of product, pairwise
        """,
    ),
    "text of another form, with what it should be": (
        VALID + "level: '4.1'\n",
        """
        f.yaml:4:8: `level` is "4.1": a level like 4_1
             4 | level: '4.1'
               |        ^^^^^
        """,
    ),
    "text of another form": (
        VALID + "code: y\n",
        """
        f.yaml:4:7: `code` is "y": must match ^X
             4 | code: y
               |       ^
        """,
    ),
    "a number below the least": (
        VALID + "size: -1\n",
        """
        f.yaml:4:7: `size` must be at least 0, not -1
             4 | size: -1
               |       ^^
        """,
    ),
    "an empty list": (
        "operator: A\ncases: []\n",
        """
        f.yaml:2:8: `cases` must have at least one item, not []
             2 | cases: []
               |        ^^
        """,
    ),
    "a mapping without entries": (
        VALID + "parts: {}\n",
        """
        f.yaml:4:8: `parts` must have at least one entry, not {}
             4 | parts: {}
               |        ^^
        """,
    ),
    "a list that is too long, with an item twice": (
        VALID + "most: [1, 1, 2]\n",
        """
        f.yaml:4:7: `most` must have at most 2 items, not [1, 1, 2]
             4 | most: [1, 1, 2]
               |       ^^^^^^^^^
        f.yaml:4:7: `most` must have each item once, not [1, 1, 2]
             4 | most: [1, 1, 2]
               |       ^^^^^^^^^
        """,
    ),
    "another value than the only one": (
        VALID + "version: 2\n",
        """
        f.yaml:4:10: `version` must be 3, not 2
             4 | version: 2
               |          ^
        """,
    ),
    "an item of a list that no alternative permits": (
        VALID + "either: [a, 5]\n",
        """
        f.yaml:4:13: `either[1]` must be text, not 5
             4 | either: [a, 5]
               |             ^
        """,
    ),
    "two fields that exclude each other": (
        VALID + "pair: {a: 1, b: 2}\n",
        """
        f.yaml:4:7: `pair` cannot have `a` and `b`
             4 | pair: {a: 1, b: 2}
               |       ^^^^^^^^^^^^
            hint: keep one of them
        """,
    ),
    "what an alias stands for, where its anchor is": (
        "operator: A\ncases: [&x {desc: 1}, *x]\n",
        """
        f.yaml:2:19: `cases[0].desc` must be a mapping, not 1
             2 | cases: [&x {desc: 1}, *x]
               |                   ^
        f.yaml:2:19: `cases[1].desc` must be a mapping, not 1
             2 | cases: [&x {desc: 1}, *x]
               |                   ^
        """,
    ),
    "text that a terminal would obey": (
        VALID + 'kind: "\\e[2J\\u202e"\n',
        r"""
        f.yaml:4:7: `kind` cannot be "\u001b[2J\u202e"
             4 | kind: "\e[2J\u202e"
               |       ^^^^^^^^^^^^^
            hint: one of product, pairwise
        """,
    ),
}


def problems(directory: Path, text: str) -> str:
    """Return the messages about a document with this text; "" if it is valid."""
    document = read_document(write(directory, text))
    reports = schema_problems(document, validator(SCHEMA), document.data)
    return (
        str(InvalidFilesError(reports)).replace(f"{directory}/", "").replace(f"{directory}\\", "")
    )


def test_valid_document_has_no_problems(tmp_path: Path) -> None:
    assert problems(tmp_path, VALID) == ""


@pytest.mark.parametrize("name", REFUSED)
def test_each_problem_is_reported_with_its_line_and_column(tmp_path: Path, name: str) -> None:
    text, message = REFUSED[name]
    assert problems(tmp_path, text) == shown(message)


def test_problem_in_part_of_a_document_has_its_line(tmp_path: Path) -> None:
    document = read_document(write(tmp_path, "a: 1\nparts:\n  - x: 1\n  - x: true\n"))
    checker = validator({"properties": {"x": {"type": "integer"}}})
    where = ("parts", 1)
    (problem,) = schema_problems(document, checker, document.data["parts"][1], where)
    assert (problem.line, problem.column) == (4, 8)
    assert problem.message == "`parts[1].x` must be a whole number, not true"


BUNDLED = sorted(path.name for path in schemas_directory().glob("*.schema.json"))


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_schema_is_valid_json_schema(name: str) -> None:
    schema = bundled_schema(name.removesuffix(".schema.json"))
    validator(schema).check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema == json.loads((schemas_directory() / name).read_text("utf-8"))
