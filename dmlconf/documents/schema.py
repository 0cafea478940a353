"""Check documents against JSON Schemas, and explain problems in plain words."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmlconf.documents.fitting import fits, pattern
from dmlconf.documents.problems import InvalidFilesError, Problem, name_hint
from dmlconf.documents.reader import Document, read_document
from dmlconf.resources import schemas_directory

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator

_ValidationError = Any
"""jsonschema's error; its type would declare every attribute as possibly unset."""

__all__ = [
    "Checker",
    "bundled_checker",
    "bundled_schema",
    "checked_document",
    "first_error",
    "problems_in",
    "schema_problems",
    "validator",
]

_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "nothing",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}


_DEMANDS = {
    "const": "must be {}",
    "exclusiveMaximum": "must be less than {}",
    "exclusiveMinimum": "must be greater than {}",
    "maxItems": "must have at most {} items",
    "maxLength": "must have at most {} characters",
    "maxProperties": "must have at most {} entries",
    "maximum": "must be at most {}",
    "minItems": "must have at least {} items",
    "minLength": "must have at least {} characters",
    "minProperties": "must have at least {} entries",
    "minimum": "must be at least {}",
    "uniqueItems": "must have each item once",
}
"""What keywords of JSON Schema demand, in words; `{}` is the keyword's value."""

_SINGULARS = {
    "must have at least 1 items": "must have at least one item",
    "must have at most 1 items": "must have at most one item",
    "must have at least 1 characters": "must not be empty",
    "must have at most 1 characters": "must have at most one character",
    "must have at least 1 entries": "must have at least one entry",
    "must have at most 1 entries": "must have at most one entry",
}


_USUAL_ELSEWHERE = {
    "data": "values",
    "dims": "Sizes",
    "dtype": "DataType",
    "shape": "Sizes",
    "type": "DataType",
}
"""Names in other formats and libraries, and the fields of a tensor that have another name here."""

_LONGEST_MESSAGE = 300
"""`first_error` cuts messages after this many characters: jsonschema may quote all of the data."""

_MOST_ERRORS = 50
"""How many errors of an alternative are found where one error is enough: data may have millions."""


@cache
def bundled_schema(name: str) -> Mapping[str, Any]:
    """Return the JSON Schema in `schemas/NAME.schema.json`."""
    text = (schemas_directory() / f"{name}.schema.json").read_text("utf-8")
    schema: Mapping[str, Any] = json.loads(text)
    return schema


def validator(schema: Mapping[str, Any], most_errors: int | None = None) -> Draft202012Validator:
    """Return a validator of JSON Schema 2020-12 that reads patterns as `fitting.pattern` does.

    Args:
        most_errors: how many errors of each alternative of `oneOf` to find; None for all.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError
    from jsonschema.validators import extend

    def matches(checker: Any, value: str, data: Any, _: object) -> Iterator[ValidationError]:
        if checker.is_type(data, "string") and pattern(value).search(data) is None:
            yield ValidationError(f"{data!r} does not match {value!r}")

    def fits_one(
        checker: Any, value: Sequence[Any], data: Any, _: object
    ) -> Iterator[ValidationError]:
        found = [
            list(islice(checker.descend(data, alternative, schema_path=index), most_errors))
            for index, alternative in enumerate(value)
        ]
        fitting = found.count([])
        if not fitting:
            message = f"{data!r} is not valid under any of the given schemas"
            yield ValidationError(message, context=[error for each in found for error in each])
        elif fitting > 1:
            yield ValidationError(f"{data!r} is valid under {fitting} of the given schemas")

    own: type[Draft202012Validator] = extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, {"pattern": matches, "oneOf": fits_one}
    )
    return own(schema)


class Checker:
    """A JSON Schema for large data; the slow jsonschema checks only what `fits` does not accept."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._fits = fits(schema)

    @cached_property
    def _validator(self) -> Draft202012Validator:
        return validator(self._schema)

    @cached_property
    def _quick_validator(self) -> Draft202012Validator:
        return validator(self._schema, _MOST_ERRORS)

    def is_valid(self, data: Any) -> bool:
        """Return whether the data fits the schema."""
        return self._fits(data) or self._quick_validator.is_valid(data)

    def first_error(self, data: Any) -> _ValidationError | None:
        """Return the first error that jsonschema finds in the data; None if there is none.

        Its context has some of the errors of each alternative.
        """
        return next(self._quick_validator.iter_errors(data), None)

    def iter_errors(self, data: Any) -> Iterator[_ValidationError]:
        """Yield the errors that jsonschema finds in the data."""
        if not self._fits(data):
            yield from self._validator.iter_errors(data)


@cache
def bundled_checker(name: str) -> Checker:
    """Return the checker of data that must fit `schemas/NAME.schema.json`."""
    return Checker(bundled_schema(name))


def first_error(checker: Checker, data: Any) -> str:
    """Return the first error of data that does not fit a schema, in words."""
    error = checker.first_error(data)
    if error is None:
        return "it does not fit the schema"
    nested = _relevant(error.context) if error.context else [error]
    subject = _spoken(list(nested[0].absolute_path))
    demand = _demand(nested[0])
    message = str(nested[0].message)
    if demand is not None:
        text = f"`{subject}` {demand}" if subject else f"it {demand}"
    else:
        text = f"`{subject}`: {message}" if subject else message
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}..."


def schema_problems(
    document: Document,
    checker: Draft202012Validator | Checker,
    data: Any,
    where: Sequence[str | int] = (),
) -> list[Problem]:
    """Return the ways in which `data`, found in the document under `where`, breaks the schema."""
    problems = (
        problem
        for error in checker.iter_errors(data)
        for problem in _explained(document, error, where)
    )
    return list(dict.fromkeys(problems))  # Two parts of a schema may demand the same.


def checked_document(
    path: Path,
    schema: str,
    further: Callable[[Document], Iterable[Problem]] = lambda document: (),
) -> Document:
    """Read a file that must fit the JSON Schema `schemas/SCHEMA.schema.json`.

    Args:
        further: finds what a schema cannot express, in a file that fits the schema.

    Raises:
        InvalidFilesError: the file cannot be read, or has problems.
    """
    document = read_document(path)
    problems = schema_problems(document, bundled_checker(schema), document.data)
    if problems := problems or list(further(document)):
        raise InvalidFilesError(problems)
    return document


def problems_in(read: Callable[[], object]) -> list[Problem]:
    """Call a function; return the problems of the `InvalidFilesError` that it raises, if any."""
    try:
        read()
    except InvalidFilesError as error:
        return list(error.problems)
    return []


def _explained(
    document: Document, error: _ValidationError, where: Sequence[str | int]
) -> Iterator[Problem]:
    path = [*where, *error.absolute_path]
    subject = f"`{_spoken(path)}`" if path else "the file"
    rule = error.validator
    if error.context:
        for nested in _relevant(error.context):
            yield from _explained(document, nested, where)
    elif rule in ("additionalProperties", "unevaluatedProperties") and isinstance(
        error.instance, dict
    ):
        yield from _unknown_keys(document, error, path)
    elif rule == "required":
        # Each missing key has its own error, and only the message names it.
        missing = next(key for key in error.validator_value if error.message.startswith(repr(key)))
        message = f"{subject} lacks `{missing}`" if path else f"`{missing}` is missing"
        yield document.problem(path, message, _described(error, missing), key=True)
    elif rule == "type":
        actual = _shown(error.instance)
        yield document.problem(path, f"{subject} must be {_expected(error)}, not {actual}")
    elif rule == "enum":
        known = [str(value) for value in error.validator_value]
        message = f"{subject} cannot be {_shown(error.instance)}"
        yield document.problem(path, message, name_hint(error.instance, known))
    elif rule == "pattern":
        demand = error.schema.get("description", f"must match {error.validator_value}")
        yield document.problem(path, f"{subject} is {_shown(error.instance)}: {demand}")
    elif rule == "not" and "required" in error.validator_value:
        names = [f"`{key}`" for key in error.validator_value["required"]]
        advice = "keep one of them" if len(names) > 1 else None
        yield document.problem(path, f"{subject} cannot have {' and '.join(names)}", advice)
    elif (demand := _demand(error)) is not None:
        yield document.problem(path, f"{subject} {demand}")
    else:
        yield document.problem(path, f"{subject}: {error.message}")


def _demand(error: _ValidationError) -> str | None:
    """Return what was demanded and found, in words; None for keywords not in `_DEMANDS`."""
    if error.validator not in _DEMANDS:
        return None
    demand = _DEMANDS[error.validator].format(_shown(error.validator_value))
    return f"{_SINGULARS.get(demand, demand)}, not {_shown(error.instance)}"


def _relevant(errors: Iterable[_ValidationError]) -> list[_ValidationError]:
    """Return the errors of the alternative that has the deepest error in the data.

    Among several, the alternative with the fewest errors counts.
    """
    by_branch: dict[Any, list[_ValidationError]] = {}
    for error in errors:
        by_branch.setdefault(error.relative_schema_path[0], []).append(error)
    return max(by_branch.values(), key=lambda e: (max(len(x.absolute_path) for x in e), -len(e)))


def _unknown_keys(
    document: Document, error: _ValidationError, path: Sequence[str | int]
) -> Iterator[Problem]:
    known = error.schema.get("properties", {})
    owner = error.schema.get("title") or (f"`{_spoken(path)}`" if path else "the file")
    for key in error.instance:
        if key in known:
            continue
        absent = [name for name in known if name not in error.instance]
        meant = _USUAL_ELSEWHERE.get(str(key), key)
        similar = meant if meant in absent else key
        hint = name_hint(similar, absent, f"known here: {', '.join(known)}", mark="`")
        fill = error.instance.get("fill")
        if isinstance(fill, str) and "(" in fill and str(key).endswith(")"):
            # YAML reads two keys in `{fill: uniform(-1, 1)}`: `fill` and `1)`.
            hint = "a fill has no parentheses: write `fill: {uniform: {low: -1, high: 1}}`"
        yield document.problem([*path, key], f"unknown field `{key}` in {owner}", hint, key=True)


def _spoken(path: Sequence[str | int]) -> str:
    """Return a key path as people write it: `cases[2].desc.Axis`."""
    spoken = ""
    for step in path:
        spoken += f"[{step}]" if isinstance(step, int) else f".{step}" if spoken else step
    return spoken


def _expected(error: _ValidationError) -> str:
    types = error.validator_value
    names = [types] if isinstance(types, str) else list(types)
    return " or ".join(_TYPES[name] for name in names)


def _described(error: _ValidationError, key: str) -> str | None:
    described = error.schema.get("properties", {}).get(key, {})
    text = described.get("description") if isinstance(described, dict) else None
    return str(text) if text else None


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
