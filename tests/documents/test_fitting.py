"""The quick check of data against a JSON Schema accepts only what the package jsonschema accepts.

With some parts of schemas, it refuses valid data, too.

The tested code is in `dmlconf/documents/fitting.py`.
"""

from __future__ import annotations

import copy
import json
from operator import itemgetter
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from dmlconf.cases.loading.schema import desc_schema, expect_schema
from dmlconf.catalogue.loader import operator
from dmlconf.documents.fitting import fits
from dmlconf.documents.reader import read_document
from dmlconf.documents.schema import bundled_schema
from dmlconf.resources import cases_directory, schemas_directory
from dmlconf.run_log.log import verdict_data
from tests.each import for_each
from tests.reports import logs

VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    1.0,
    1.5,
    float("nan"),
    1 << 33,
    "",
    "=Axis",
    "FLOAT32",
    "E_FAIL",
    [],
    [1],
    ["a"],
    ["a", "a"],
    [1, 1],
    [[0.5]],
    {},
    {"rejected": "E_FAIL"},
    {"data_types": "InputTensor"},
    {"Axis": 1},
    {"Axis": [1, 2]},
)

SMALL_SCHEMAS: Final[tuple[dict[str, Any], ...]] = (
    {"type": "integer"},
    {"type": ["number", "null"]},
    {"type": "boolean"},
    {"type": "string", "pattern": "^="},
    {"pattern": "ll"},
    {"enum": ["FLOAT32", "E_FAIL"]},
    {"enum": [1, True]},
    {"enum": [1, "a"]},
    {"const": 1},
    {"minLength": 1},
    {"type": "array", "uniqueItems": True},
    {"not": {"uniqueItems": True}},
    {"not": {"$ref": "#/$defs/a"}, "$defs": {"a": {"uniqueItems": True}}},
    {"dependentRequired": {"Axis": ["rejected"], "rejected": []}},
    {"properties": {"Axis": False, "rejected": True}},
    {"minimum": 0, "maximum": 1},
    {"minItems": 1, "items": {"type": "integer"}},
    {"maxItems": 0},
    {"exclusiveMinimum": 0},
    {"exclusiveMaximum": 1},
    {"maxLength": 5},
    {"anyOf": [{"type": "integer"}, {"minimum": 1, "type": "number"}, {"minLength": 1}]},
    {"allOf": [{"type": "integer"}, {"minimum": 1}]},
    {"not": {"anyOf": [{"type": "integer"}, {"type": "object"}]}},
    {"required": ["rejected"]},
    {"minProperties": 1, "maxProperties": 1},
    {"properties": {"Axis": {"type": "string"}}},
    {"properties": {"Axis": {}}, "additionalProperties": False},
    {"additionalProperties": {"type": "integer"}},
    {"not": {"type": "object"}},
    {"if": {"type": "object"}, "then": {"required": ["Axis"]}, "else": {"type": "string"}},
    {"if": {"type": "object"}, "else": {"type": "string"}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"items": {"$ref": "#/$defs/a"}, "type": "array"}}},
    {"$ref": "#/$defs/a/items", "$defs": {"a": {"items": {"type": "string"}}}},
    {"oneOf": [{"type": "integer"}, {"type": "string"}]},
    {"oneOf": [{"type": "string"}, {"type": "array", "uniqueItems": True}]},
    {"oneOf": [{"type": "array", "uniqueItems": True}, {"type": "array", "minItems": 1}]},
    {"not": {"oneOf": [{"type": "integer"}]}},
    {
        "oneOf": [
            {"type": "object", "properties": {"Axis": {"uniqueItems": True}}},
            {"type": "object", "properties": {"Axis": {"type": "array"}}},
        ]
    },
    {"not": {"enum": [1]}},
    {"items": False},
)

DOUBTFUL_PARTS: Final = ("[1, true", '"not": {"enum"', "uniqueItems")
"""Parts of schemas, as JSON, for which the quick check may refuse valid data."""

WITHOUT_DOUBT: Final = [
    schema
    for schema in SMALL_SCHEMAS
    if not any(part in json.dumps(schema) for part in DOUBTFUL_PARTS)
]


@pytest.mark.parametrize("schema", SMALL_SCHEMAS, ids=json.dumps)
def test_the_quick_check_accepts_only_values_that_jsonschema_accepts(
    schema: dict[str, Any],
) -> None:
    checker, check = Draft202012Validator(schema), fits(schema)
    assert [value for value in VALUES if check(value) and not checker.is_valid(value)] == []


@pytest.mark.parametrize("schema", WITHOUT_DOUBT, ids=json.dumps)
def test_quick_check_without_doubt_accepts_what_jsonschema_accepts(
    schema: dict[str, Any],
) -> None:
    checker, check = Draft202012Validator(schema), fits(schema)
    assert [value for value in VALUES if checker.is_valid(value) and not check(value)] == []


@pytest.mark.parametrize("name", ["none", "a/none", "a/type/none"])
def test_schema_with_an_unknown_reference_refuses_everything(name: str) -> None:
    schema = {"$ref": f"#/$defs/{name}", "$defs": {"a": {"type": "string"}}}
    assert not any(map(fits(schema), VALUES))


@pytest.mark.parametrize(
    "other", [{"const": "any"}, {"enum": ["a", "b"]}, {"$ref": "#/$defs/word"}], ids=json.dumps
)
def test_quick_check_decides_between_word_and_list_of_words(other: dict[str, Any]) -> None:
    words = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
    check = fits({"oneOf": [other, words], "$defs": {"word": {"enum": ["any"]}}})
    assert check(["any", "a"])
    assert not check(["a", "a"])


@for_each(
    [
        ("combinations", "combinations/*.yaml"),
        ("finding", "findings/*.yaml"),
        ("known-faults", "known-faults.yaml"),
        ("operator", "operators/[ct]*.yaml"),
        ("questions", "questions.yaml"),
        ("rewrites", "rewrites.yaml"),
        ("target", "targets/*.yaml"),
        ("translation", "translation/*.yaml"),
    ],
    name=itemgetter(0),
)
def test_quick_check_accepts_bundled_files(schema_and_files: tuple[str, str]) -> None:
    """With an unsupported keyword in the schema, it would refuse all of them."""
    schema, files = schema_and_files
    check = fits(bundled_schema(schema))
    paths = list(schemas_directory().glob(files))
    assert paths
    assert [path.name for path in paths if not check(read_document(path).data)] == []


def positions(data: Any) -> list[tuple[Any, Any]]:
    """Return each list and mapping in the data, with each of its indices or keys."""
    items = data.items() if isinstance(data, dict) else enumerate(data)
    return [
        position
        for key, value in items
        for position in ((data, key), *(positions(value) if isinstance(value, dict | list) else []))
    ]


def schemas_with_data() -> list[tuple[dict[str, Any], Any]]:
    result: list[tuple[dict[str, Any], Any]] = []
    for name, stem in (("GATHER", "matrix"), ("TILE", "documented"), ("JOIN", "invalid")):
        file = cases_directory() / name.lower() / f"{stem}.yaml"
        data = yaml.safe_load(file.read_text("utf-8"))
        result.append((dict(bundled_schema("case")), data))
        for entry in data["cases"]:
            desc = desc_schema(operator(name), matrix="matrix" in entry)
            parts = {"desc": desc, "expect": expect_schema(operator(name))}
            result.append(({"properties": parts}, entry))
    return result


SCHEMAS_WITH_DATA: Final = schemas_with_data()


@given(st.data())
def test_quick_check_agrees_with_jsonschema_on_changed_case_files(
    data: st.DataObject,
) -> None:
    schema, sound = data.draw(st.sampled_from(SCHEMAS_WITH_DATA))
    assert fits(schema)(sound)
    changed = copy.deepcopy(sound)
    container, key = data.draw(st.sampled_from(positions(changed)))
    if data.draw(st.booleans()) and isinstance(container, dict):
        del container[key]
    else:
        container[key] = data.draw(st.sampled_from(VALUES))
    assert fits(schema)(changed) == Draft202012Validator(schema).is_valid(changed)


@pytest.mark.parametrize("definition", ["verdictLine", "attemptLine"])
def test_quick_check_accepts_lines_of_run_logs(
    definition: str,
) -> None:
    schema = bundled_schema("run-log")
    quick = fits({"$defs": schema["$defs"], "$ref": f"#/$defs/{definition}"})
    record = definition.removesuffix("Line")
    for place, verdict in enumerate(logs.everything().verdicts):
        line = json.loads(json.dumps({"record": record, "place": place, **verdict_data(verdict)}))
        assert quick(line), verdict.case
