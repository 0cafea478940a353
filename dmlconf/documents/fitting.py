"""Check quickly whether data fits a JSON Schema.

A schema is compiled to a function that returns True only for data that fits. If the function
returns False, jsonschema decides and explains, which takes many times as long. A schema with an
unsupported keyword gives False for all data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, cast

__all__ = ["Fits", "fits", "pattern"]

Fits = Callable[[Any], bool]

_Schema = Mapping[str, Any]


class _UnknownError(Exception):
    """A schema has an unsupported keyword, or an unsupported form of one."""


class _UndecidedError(Exception):
    """The data has a list that needs unique items, not all of which are text."""


class _Definitions:
    """The schemas under `$defs`, each compiled to a function when it is first referenced."""

    def __init__(self, schemas: Mapping[str, _Schema]) -> None:
        self._schemas = schemas
        self._functions: dict[str, Fits] = {}

    def schema(self, reference: str) -> _Schema:
        schema: Any = self._schemas
        for name in reference.removeprefix("#/$defs/").split("/"):
            if not isinstance(schema, Mapping) or name not in schema:
                raise _UnknownError(reference)
            schema = schema[name]
        return cast("_Schema", schema)

    def fits(self, reference: str) -> Fits:
        name = reference.removeprefix("#/$defs/")
        if name not in self._functions:
            # A schema may refer to itself, so its function is needed while it is compiled.
            self._functions[name] = lambda data: self._functions[name](data)
            self._functions[name] = _fits(self.schema(reference), self)
        return self._functions[name]


def fits(schema: _Schema) -> Fits:
    """Return a function that checks whether data fits the schema.

    If the function returns False, the data may still fit.
    """
    try:
        check = _fits(schema, _Definitions(schema.get("$defs", {})))
    except _UnknownError:
        return lambda data: False

    def decided(data: Any) -> bool:
        try:
            return check(data)
        except _UndecidedError:
            return False

    return decided


def _fits(schema: _Schema | bool, definitions: _Definitions) -> Fits:
    if isinstance(schema, bool):
        return lambda data: schema
    if not isinstance(schema, Mapping):
        raise _UnknownError(schema)
    checks = []
    for keyword, value in schema.items():
        if keyword in _MAKERS:
            checks.append(_MAKERS[keyword](value, schema, definitions))
        elif keyword not in _WITHOUT_CHECK:
            raise _UnknownError(keyword)
    if len(checks) == 1:
        return checks[0]

    def check(data: Any) -> bool:
        for each in checks:  # noqa: SIM110  # A generator would cost more than the checks.
            if not each(data):
                return False
        return True

    return check


def _is_number(data: Any) -> bool:
    return isinstance(data, int | float) and not isinstance(data, bool)


def _is_integer(data: Any) -> bool:
    return type(data) is int or (isinstance(data, float) and data.is_integer())


_TYPES: Final[Mapping[str, Fits]] = {
    "array": lambda data: isinstance(data, list),
    "boolean": lambda data: isinstance(data, bool),
    "integer": _is_integer,
    "null": lambda data: data is None,
    "number": _is_number,
    "object": lambda data: isinstance(data, dict),
    "string": lambda data: isinstance(data, str),
}


def _type(value: str | Sequence[str], schema: _Schema, definitions: _Definitions) -> Fits:
    if isinstance(value, str):
        return _TYPES[value]
    kinds = [_TYPES[name] for name in value]
    return lambda data: any(kind(data) for kind in kinds)


def _enum(values: Sequence[Any], schema: _Schema, definitions: _Definitions) -> Fits:
    if not all(value is None or isinstance(value, str) or type(value) is int for value in values):
        raise _UnknownError("only strings, integers and null are compared here")
    known = frozenset(values)
    # 1 and true are equal in Python, and not in JSON.
    return lambda data: (
        (data is None or isinstance(data, str) or _is_number(data)) and data in known
    )


def _const(value: Any, schema: _Schema, definitions: _Definitions) -> Fits:
    if isinstance(value, bool):
        return lambda data: data is value
    return _enum([value], schema, definitions)


def _one_of(parts: Sequence[_Schema], schema: _Schema, definitions: _Definitions) -> Fits:
    alternatives = [_fits(part, definitions) for part in parts]
    return lambda data: sum(alternative(data) for alternative in alternatives) == 1


def _any_of(parts: Sequence[_Schema], schema: _Schema, definitions: _Definitions) -> Fits:
    alternatives = [_fits(part, definitions) for part in parts]
    return lambda data: any(alternative(data) for alternative in alternatives)


def _all_of(parts: Sequence[_Schema], schema: _Schema, definitions: _Definitions) -> Fits:
    checks = [_fits(part, definitions) for part in parts]
    return lambda data: all(check(data) for check in checks)


@cache
def pattern(source: str) -> re.Pattern[str]:
    """Compile a `pattern` of JSON Schema, in which a final `$` matches only at the end of the text.

    Python's `$` also matches before a final line feed.
    """
    ends = source.endswith("$") and not source.endswith("\\$")
    return re.compile(source[:-1] + "\\Z" if ends else source)


def _pattern(value: str, schema: _Schema, definitions: _Definitions) -> Fits:
    search = pattern(value).search
    return lambda data: not isinstance(data, str) or search(data) is not None


def _minimum(least: float, schema: _Schema, definitions: _Definitions) -> Fits:
    return lambda data: not (_is_number(data) and data < least)


def _maximum(most: float, schema: _Schema, definitions: _Definitions) -> Fits:
    return lambda data: not (_is_number(data) and data > most)


def _exclusive_minimum(bound: float, schema: _Schema, definitions: _Definitions) -> Fits:
    return lambda data: not (_is_number(data) and data <= bound)


def _exclusive_maximum(bound: float, schema: _Schema, definitions: _Definitions) -> Fits:
    return lambda data: not (_is_number(data) and data >= bound)


def _required(names: Sequence[str], schema: _Schema, definitions: _Definitions) -> Fits:
    return lambda data: not isinstance(data, dict) or all(name in data for name in names)


def _properties(
    properties: Mapping[str, _Schema], schema: _Schema, definitions: _Definitions
) -> Fits:
    parts = {name: _fits(part, definitions) for name, part in properties.items()}

    def check(data: Any) -> bool:
        if not isinstance(data, dict):
            return True
        for name, value in data.items():
            part = parts.get(name)
            if part is not None and not part(value):
                return False
        return True

    return check


def _additional_properties(part: Any, schema: _Schema, definitions: _Definitions) -> Fits:
    known = frozenset(schema.get("properties", ()))
    if part is False:
        return lambda data: not isinstance(data, dict) or known.issuperset(data)
    other = _fits(part, definitions)
    return lambda data: (
        not isinstance(data, dict)
        or all(other(value) for name, value in data.items() if name not in known)
    )


def _unevaluated_properties(part: Any, schema: _Schema, definitions: _Definitions) -> Fits:
    if part is not False or not schema.keys() <= {*_WITHOUT_CHECK, *_EVALUATING}:
        raise _UnknownError("properties evaluated by other keywords are not known here")
    known = set(schema.get("properties", ()))
    if "$ref" in schema:
        target = definitions.schema(schema["$ref"])
        if _MORE_THAN_PROPERTIES & target.keys():
            raise _UnknownError("a reference to more than properties")
        known |= set(target.get("properties", ()))
    return lambda data: not isinstance(data, dict) or known.issuperset(data)


def _property_names(part: _Schema, schema: _Schema, definitions: _Definitions) -> Fits:
    fits_name = _fits(part, definitions)
    return lambda data: not isinstance(data, dict) or all(map(fits_name, data))


def _min_properties(least: int, schema: _Schema, definitions: _Definitions) -> Fits:
    return lambda data: not isinstance(data, dict) or len(data) >= least


def _max_properties(most: int, schema: _Schema, definitions: _Definitions) -> Fits:
    return lambda data: not isinstance(data, dict) or len(data) <= most


def _items(part: _Schema, schema: _Schema, definitions: _Definitions) -> Fits:
    item = _fits(part, definitions)
    return lambda data: not isinstance(data, list) or all(item(value) for value in data)


def _min_items(least: int, schema: _Schema, definitions: _Definitions) -> Fits:
    return lambda data: not isinstance(data, list) or len(data) >= least


def _max_items(most: int, schema: _Schema, definitions: _Definitions) -> Fits:
    return lambda data: not isinstance(data, list) or len(data) <= most


def _unique_items(value: bool, schema: _Schema, definitions: _Definitions) -> Fits:
    """Return a check that a list of strings has no duplicates; other lists are not decided."""

    def check(data: Any) -> bool:
        if not isinstance(data, list):
            return True
        if not all(isinstance(item, str) for item in data):
            raise _UndecidedError
        return len(set(data)) == len(data)

    return check if value else lambda data: True


def _min_length(least: int, schema: _Schema, definitions: _Definitions) -> Fits:
    return lambda data: not isinstance(data, str) or len(data) >= least


def _max_length(most: int, schema: _Schema, definitions: _Definitions) -> Fits:
    return lambda data: not isinstance(data, str) or len(data) <= most


def _dependent_required(
    names: Mapping[str, Sequence[str]], schema: _Schema, definitions: _Definitions
) -> Fits:
    return lambda data: (
        not isinstance(data, dict)
        or all(other in data for name, others in names.items() if name in data for other in others)
    )


def _not(part: _Schema, schema: _Schema, definitions: _Definitions) -> Fits:
    excluded = _fits(part, definitions)
    return lambda data: not excluded(data)


def _if(part: _Schema, schema: _Schema, definitions: _Definitions) -> Fits:
    condition = _fits(part, definitions)
    then = _fits(schema.get("then", {}), definitions)
    otherwise = _fits(schema.get("else", {}), definitions)
    return lambda data: then(data) if condition(data) else otherwise(data)


def _reference(value: str, schema: _Schema, definitions: _Definitions) -> Fits:
    return definitions.fits(value)


_WITHOUT_CHECK: Final = frozenset(
    {"$schema", "$defs", "title", "description", "format", "then", "else"}
)

_EVALUATING: Final = frozenset({"$ref", "properties", "required", "type", "unevaluatedProperties"})

_MORE_THAN_PROPERTIES: Final = frozenset(
    {"$ref", "additionalProperties", "allOf", "anyOf", "if", "oneOf"}
)

_MAKERS: Final[Mapping[str, Callable[[Any, _Schema, _Definitions], Fits]]] = {
    "$ref": _reference,
    "additionalProperties": _additional_properties,
    "allOf": _all_of,
    "anyOf": _any_of,
    "const": _const,
    "dependentRequired": _dependent_required,
    "enum": _enum,
    "exclusiveMaximum": _exclusive_maximum,
    "exclusiveMinimum": _exclusive_minimum,
    "if": _if,
    "items": _items,
    "maxItems": _max_items,
    "maxLength": _max_length,
    "maxProperties": _max_properties,
    "maximum": _maximum,
    "minItems": _min_items,
    "minLength": _min_length,
    "minProperties": _min_properties,
    "minimum": _minimum,
    "not": _not,
    "oneOf": _one_of,
    "pattern": _pattern,
    "properties": _properties,
    "propertyNames": _property_names,
    "required": _required,
    "type": _type,
    "unevaluatedProperties": _unevaluated_properties,
    "uniqueItems": _unique_items,
}
