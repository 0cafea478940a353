"""Create random descs and change their fields; the descs need not be valid yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.loader import enumeration
from dmlconf.catalogue.model import AttributeKind, Field, Operator, SupportTable
from dmlconf.catalogue.support import data_types_of
from dmlconf.fuzzing import domains
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.solving import ANOTHER, PRESENT
from dmlconf.fuzzing.terms import Changes, Path
from dmlconf.tensors.datatypes import DataType

__all__ = ["Drafts", "UnfitError"]

_LARGEST_SIZE: Final = 1 << 17
"""The largest size of a dimension."""
_LARGEST_NUMBER: Final = 1 << 16
"""The largest absolute value of an attribute of type UINT or INT."""
_LONGEST: Final = 64
"""The most items of an array."""
_MOST_DIMENSIONS: Final = 8


class UnfitError(ValueError):
    """A change that cannot be applied to a desc."""


class Drafts:
    """Creates and changes the descs of one operator."""

    def __init__(self, operator: Operator, table: SupportTable, chance: Chance) -> None:
        """Choose sizes, a data type and a rank for new tensors, as far as `table` permits them."""
        self._operator, self._table, self._chance = operator, table, chance
        self._fields = {field.name: field for field in operator.fields}
        self._sizes = tuple(domains.size(chance) for _ in range(_MOST_DIMENSIONS))
        first = next(iter(table.tensors.values()))
        self._type = chance.pick(first.data_types)
        self._rank = domains.rank(chance, *first.ranks)

    def first(self) -> Desc:
        """Return a random desc that fits the support table and the fields' types."""
        chance = self._chance
        desc: dict[str, Any] = {}
        for field in self._operator.fields:
            absent = field.optional and chance.once_in(2)
            desc[field.name] = None if absent else self._fresh(field)
        for count, arrays in self._operator.count_fields.items():
            self._resize(desc, count, max(len(desc[name] or ()) for name in arrays))
        self._fit_scalars(desc)
        return desc

    def changed(self, desc: Desc, changes: Changes) -> Desc:
        """Return a desc with changes.

        Raises:
            UnfitError: a field cannot have its new value.
        """
        draft = dict(desc)
        for path, value in changes:
            self._change(draft, path, value)
        self._fit_scalars(draft)
        return draft

    # Initial values.

    def _fresh(self, field: Field) -> Any:
        if field.is_array:
            count = domains.length(self._chance) if field.is_tensor else self._rank
            return tuple(self._item(field) for _ in range(count))
        return self._item(field)

    def _item(self, field: Field) -> Any:
        if field.is_tensor:
            return self._tensor(field)
        if field.base_type == "DML_TENSOR_DATA_TYPE":
            return str(self._type)
        return domains.attribute(field, self._operator, self._chance)

    def _tensor(self, field: Field) -> TensorDesc:
        row = self._table.tensors[field.name]
        data_type = self._type
        if data_type not in row.data_types:
            data_type = self._chance.pick(row.data_types)
        rank = min(max(self._rank, row.ranks[0]), row.ranks[1])
        return TensorDesc(data_type, self._sizes[_MOST_DIMENSIONS - rank :])

    # Changes.

    def _change(self, draft: dict[str, Any], path: Path, value: Any) -> None:
        field = self._fields[str(path[0])]
        current = draft[field.name]
        if len(path) == 1:
            self._replace(draft, field, value)
        elif field.is_tensor:
            draft[field.name] = self._with_tensor(field, current, path[1:], value)
        elif isinstance(path[1], int) and field.is_array:
            if current is None or not path[1] < len(current):
                raise UnfitError
            item = current[path[1]]
            if len(path) > 2:
                value = self._with_key(field, item, path[2:], value)
            items = list(current)
            items[path[1]] = self._checked(field, value)
            draft[field.name] = tuple(items)
        else:
            draft[field.name] = self._with_key(field, current, path[1:], value)

    def _replace(self, draft: dict[str, Any], field: Field, value: Any) -> None:
        name = field.name
        if name in self._operator.count_fields:
            if not _is_whole(value):
                raise UnfitError
            self._resize(draft, name, value)
        elif value is None:
            if not field.optional:
                raise UnfitError
            draft[name] = None
        elif value is PRESENT:
            draft[name] = self._fresh(field)
            if field.count is not None:
                self._resize(draft, field.count, draft[field.count])
        elif field.is_array:
            if not isinstance(value, tuple) or len(value) > _LONGEST:
                raise UnfitError
            draft[name] = tuple(self._checked(field, item) for item in value)
            assert field.count is not None
            self._resize(draft, field.count, len(value))
        else:
            draft[name] = self._checked(field, value)

    def _checked(self, field: Field, value: Any) -> Any:
        """Return the value if the field may have it, and a random value for PRESENT and ANOTHER."""
        if value is PRESENT or value is ANOTHER:
            return self._item(field)
        if field.is_tensor:
            if not isinstance(value, TensorDesc):
                raise UnfitError
            return value
        match field.attribute_kind:
            case AttributeKind.UINT:
                fits = _is_whole(value) and 0 <= value <= _LARGEST_NUMBER
            case AttributeKind.INT:
                fits = _is_whole(value) and abs(value) <= _LARGEST_NUMBER
            case AttributeKind.FLOAT:
                fits = _is_number(value) and domains.scalar_fits(value, DataType.FLOAT32)
            case AttributeKind.SCALAR_UNION:
                fits = _is_number(value)
            case AttributeKind.BOOL:
                fits = isinstance(value, bool)
            case AttributeKind.ENUM:
                fits = _is_whole(value) or value in enumeration(field.base_type).values
            case _:
                fits = isinstance(value, Mapping)
        if not fits:
            raise UnfitError
        return value

    def _with_key(self, field: Field, current: Any, path: Path, value: Any) -> Any:
        key, *inner = path
        if not isinstance(current, Mapping) or key not in current:
            raise UnfitError
        if key == "operator":
            if value is ANOTHER:
                value = self._chance.pick(domains.foreign_operators(self._operator, field.name))
            return domains.nested(_operator_name(value), self._chance)
        if inner:
            return {**current, key: _with_item(current[key], inner, value)}
        if value is None:
            return {**current, key: None}
        least = 0 if field.attribute_kind is AttributeKind.SIZE_2D else -float("inf")
        if not _is_number(value) or value < least or isinstance(current[key], tuple):
            raise UnfitError
        if not domains.scalar_fits(value, DataType.FLOAT32):
            raise UnfitError
        return {**current, key: value}

    def _with_tensor(self, field: Field, current: Any, path: Path, value: Any) -> Any:
        if current is None:
            raise UnfitError
        if not field.is_array:
            return self._changed_tensor(field, current, path, value)
        index = path[0]
        assert isinstance(index, int)
        if not index < len(current):
            raise UnfitError
        items = list(current)
        items[index] = (
            self._checked(field, value)
            if len(path) == 1
            else self._changed_tensor(field, items[index], path[1:], value)
        )
        return tuple(items)

    def _changed_tensor(
        self, field: Field, tensor: TensorDesc, path: Path, value: Any
    ) -> TensorDesc:
        match path:
            case ("DataType",):
                return replace(tensor, DataType=self._data_type(field, tensor, value))
            case ("Sizes",):
                return replace(tensor, Sizes=self._checked_sizes(value), Strides=None)
            case ("Sizes", int(index)):
                if not index < len(tensor.Sizes):
                    raise UnfitError
                sizes = (*tensor.Sizes[:index], value, *tensor.Sizes[index + 1 :])
                return replace(tensor, Sizes=self._checked_sizes(sizes), Strides=None)
            case ("Strides",):
                return replace(tensor, Strides=None)
            case ("Flags",):
                return replace(tensor, Flags=())
        raise UnfitError

    def _data_type(self, field: Field, tensor: TensorDesc, value: Any) -> DataType:
        listed = data_types_of(self._operator, field.name)
        if value is ANOTHER:
            others = [each for each in listed if each is not tensor.DataType]
            if not others:
                raise UnfitError
            return self._chance.pick(others)
        extra = self._operator.undocumented_data_types.get(field.name, ())
        if value not in (*listed, *extra):
            raise UnfitError
        return DataType(value)

    def _checked_sizes(self, sizes: Any) -> tuple[int, ...]:
        if not isinstance(sizes, tuple) or not 1 <= len(sizes) <= _MOST_DIMENSIONS:
            raise UnfitError
        checked = tuple(domains.size(self._chance) if size is PRESENT else size for size in sizes)
        if not all(_is_whole(size) and 1 <= size <= _LARGEST_SIZE for size in checked):
            raise UnfitError
        return checked

    def _resize(self, draft: dict[str, Any], count: str, length: int) -> None:
        if not 0 <= length <= _LONGEST:
            raise UnfitError
        draft[count] = length
        for name in self._operator.count_fields[count]:
            items = draft[name]
            if items is not None:
                field = self._fields[name]
                more = (self._item(field) for _ in range(length - len(items)))
                draft[name] = (*items[:length], *more)

    def _fit_scalars(self, draft: dict[str, Any]) -> None:
        for field in self._operator.fields:
            if field.type_field is None or draft[field.name] is None:
                continue
            if draft[field.type_field] not in list(DataType):
                continue  # Such as UNKNOWN: DirectML then ignores the scalar.
            data_type = DataType(draft[field.type_field]).stored
            if not draft.get(field.name) or not domains.scalar_fits(draft[field.name], data_type):
                draft[field.name] = domains.scalar(data_type, self._chance)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, float) or _is_whole(value)


def _operator_name(value: Any) -> str:
    if not isinstance(value, str):
        raise UnfitError
    return value


def _with_item(items: Any, path: Sequence[str | int], value: Any) -> tuple[Any, ...]:
    """Return a nested operator's array with another whole number at an index."""
    [index] = path
    if not isinstance(items, tuple) or not isinstance(index, int) or not index < len(items):
        raise UnfitError
    if not _is_whole(value) or value < 0:
        raise UnfitError
    return (*items[:index], value, *items[index + 1 :])
