"""Change one parameter of a case that is being made (a draft), and make a case of the draft."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from dmlconf.cases.building.attributes import require_scalars
from dmlconf.cases.model import About, Case, Fill, Location
from dmlconf.catalogue.desc import Desc, TensorDesc, tensors_of
from dmlconf.catalogue.model import Field, FieldKind, Operator
from dmlconf.catalogue.tensor_ref import TensorRef
from dmlconf.coverage.combinations.classes import REAL_CLASSES, data_class, data_input
from dmlconf.coverage.combinations.parameters import ABSENT, Parameter
from dmlconf.coverage.combinations.spaces import spaces_of
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.fills import fill
from dmlconf.tensors.layout import LAYOUTS, as_stored, layout_class, packed_strides
from tests.combinations.attention import is_attention, mask_values, with_other_heads
from tests.combinations.data import fill_of
from tests.combinations.moves import moves_windows, with_other_moves
from tests.combinations.recurrent import is_recurrent, with_other_networks
from tests.combinations.scatter import distinct_indices, with_other_tuples
from tests.combinations.shapes import with_other_shapes
from tests.combinations.sizes import SIZES
from tests.combinations.starts import starts
from tests.combinations.tensors import with_tensors
from tests.combinations.windows import has_windows, with_other_windows

__all__ = [
    "INFINITE",
    "MOST_ELEMENTS",
    "Draft",
    "Pool",
    "case_of",
    "changes",
    "entry_of",
    "layout_name",
    "may_have",
    "shared_buffers",
    "starting_drafts",
]

MOST_ELEMENTS: Final = 100_000
"""The most elements of all tensors of a case together, so that the case is quick."""

_WEIGHTS: Final = ("WeightTensor", "RecurrenceTensor")
"""Tensors by which recurrent networks multiply their inputs and states."""

INFINITE: Final = ("special", "all -infinity")

_WITHOUT_SIZES: Final = "owned inputs", "base alignment", "in place"
"""Parameters on which no size depends."""

_LISTED: Final = 64
"""Data with more elements are made anew rather than listed."""

_FROM_ONE: Final = "ELEMENT_WISE_ACOSH"
"""An operator that gives NaN for inputs below 1."""


@dataclass(frozen=True)
class Draft:
    """A case that is being made.

    Attributes:
        data: entries of a case file for inputs; that of `data_input` is ignored.
        data_class: the class of the data of `data_input`.
        in_place: whether outputs share the buffers of inputs.
        mild: 0 to 2, as in `fill_of`.
    """

    desc: Desc
    data: Mapping[str, Mapping[str, Any]]
    data_class: str = "whole"
    in_place: bool = False
    mild: int = 0


@dataclass(frozen=True)
class Pool:
    """Values of attributes and descs of nested operators in cases of the operator, by name."""

    values: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    nested: Mapping[str, Any] = field(default_factory=dict)


def entry_of(operator: Operator, draft: Draft) -> dict[str, dict[str, Any]]:
    classed = data_input(operator)
    entries: dict[str, dict[str, Any]] = {}
    for seed, (name, each, tensor) in enumerate(
        tensors_of(operator, draft.desc, FieldKind.INPUT), 1
    ):
        kept = _fitting(draft.data.get(name), each, tensor)
        if each.bounds is not None and not tensor.DataType.is_float:
            entries[name] = _indices(operator, draft.desc, each, tensor, kept)
        elif each.name == classed and operator.name == _FROM_ONE and draft.data_class == "whole":
            entries[name] = {"fill": {"integers": {"low": 1, "high": 9, "seed": seed}}}
        elif each.name == classed:
            if draft.data_class in REAL_CLASSES and not tensor.DataType.is_float:
                raise ValueError("integers are whole and finite")
            entries[name] = {"fill": fill_of(tensor, draft.data_class, draft.mild, seed)}
        elif draft.data_class == "all -infinity" and name in _WEIGHTS:
            # Weights of both signs would give infinities of both signs, whose sum is NaN.
            entries[name] = {"fill": {"uniform": {"low": 0.25, "high": 1, "seed": seed}}}
        elif kept is not None and (
            "fill" not in kept or tensor.DataType.is_float or "uniform" not in kept["fill"]
        ):
            entries[name] = _repeated(kept, tensor)
        else:
            low = -4 if tensor.DataType.is_signed else 1
            entries[name] = {"fill": {"integers": {"low": low, "high": 4, "seed": seed}}}
    return entries


def _repeated(entry: Mapping[str, Any], tensor: TensorDesc) -> dict[str, Any]:
    """Return an entry's data, with one value for all listed elements that share an address."""
    listed = entry.get("values")
    if listed is None or not tensor.OverlappingStrides or len(listed) != tensor.ElementCount:
        return dict(entry)
    array = np.array(listed, tensor.DataType.dtype).reshape(tensor.Sizes)
    return {"values": as_stored(array, tensor.Strides).reshape(-1).tolist()}


def _filled(entry: str | Mapping[str, Any], tensor: TensorDesc) -> Array:
    if tensor.ElementCount > MOST_ELEMENTS:
        raise ValueError("too large")
    kind, arguments = _kind_and_arguments(entry)
    return fill(kind, tensor.Sizes, tensor.DataType, arguments)


def _kind_and_arguments(entry: str | Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    if isinstance(entry, str):
        return entry, {}
    [(kind, arguments)] = entry.items()
    return kind, dict(arguments)


def _indices(
    operator: Operator, desc: Desc, each: Field, tensor: TensorDesc, kept: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return the entry for indices or lengths: a new one, or `kept` if it is in bounds to read."""
    assert each.bounds is not None
    if each.bounds.writes is not None:
        return distinct_indices(operator, desc, tensor)
    least, most = each.bounds.low, int(each.bounds.high.evaluate(operator.names(desc)))
    if kept is not None:
        entry = kept.get("fill")
        data = np.array(kept["values"]) if entry is None else _filled(entry, tensor)
        below = -most - 1 if each.bounds.from_end and tensor.DataType.is_signed else least
        if below <= data.min() and data.max() <= max(most, least):
            return _repeated(kept, tensor)
    return {"fill": {"integers": {"low": least, "high": max(most, least), "seed": 1}}}


def _fitting(
    entry: Mapping[str, Any] | None, each: Field, tensor: TensorDesc
) -> Mapping[str, Any] | None:
    """Return the entry, or None if it lists too few or too many elements."""
    listed = entry is not None and "values" in entry
    free = each.name in ("FilterTensor", "BiasTensor")
    if entry is not None and listed and free and len(entry["values"]) != tensor.ElementCount:
        return None
    return entry


def case_of(operator: Operator, draft: Draft) -> Case:
    """Return the draft as a case; ValueError if numbers do not fit their types."""
    require_scalars(operator, draft.desc)
    data: dict[str, Any] = {}
    tensors = {name: t for name, _, t in tensors_of(operator, draft.desc, FieldKind.INPUT)}
    for name, entry in entry_of(operator, draft).items():
        if "fill" in entry:
            kind, arguments = _kind_and_arguments(entry["fill"])
            if arguments.get("low", 0) < 0 and not tensors[name].DataType.is_signed:
                raise ValueError("negative numbers do not fit unsigned types")
            data[name] = Fill(kind, arguments)
        else:
            tensor = tensors[name]
            array = np.array(entry["values"], tensor.DataType.dtype).reshape(tensor.Sizes)
            if not np.array_equal(as_stored(array, tensor.Strides), array):
                raise ValueError("elements that share an address have different values")
            data[name] = array
    pairs = shared_buffers(operator, draft.desc) if draft.in_place else {}
    about = About(Location(Path("-"), 1), operator.page)
    return Case("-", operator.name, draft.desc, data, None, (), about, in_place=pairs)


def starting_drafts(operator: Operator, cases: Sequence[Case]) -> tuple[list[Draft], Pool]:
    """Return drafts of small cases and of `starts`, without layouts or flags, and a pool of values.

    A draft keeps the class of its case's data only if the data has infinities or NaN.
    """
    drafts: list[Draft] = []
    values: dict[str, dict[str, Any]] = {}
    nested: dict[str, Any] = {}
    for case in cases:
        for each in operator.of_kind(FieldKind.ATTRIBUTE):
            value = case.desc.get(each.name)
            for item in value if isinstance(value, tuple) else (value,):
                if isinstance(item, Mapping) and "operator" in item:
                    nested.setdefault(item["operator"], item)
            if value is not None and not isinstance(value, Mapping):
                values.setdefault(each.name, {}).setdefault(repr(value), value)
        if sum(t.ElementCount for _, _, t in tensors_of(operator, case.desc)) > 4096:
            continue
        desc = with_tensors(operator, case.desc, lambda _, t: TensorDesc(t.DataType, t.Sizes))
        data = {name: entry for name in case.data if (entry := _kept(case, name))}
        kind = data_class(case)
        drafts.append(Draft(desc, data, kind if kind in INFINITE else "whole"))
    drafts += [
        _refitted(operator, each, desc)
        for each in _templates(operator, drafts)
        for desc in starts(operator, each.desc)
    ]
    return drafts, Pool({k: list(v.values())[:60] for k, v in values.items()}, nested)


def _templates(operator: Operator, drafts: Sequence[Draft]) -> list[Draft]:
    """Return the draft for `starts`: preferably with floating-point tensors, then with many."""

    def rank(draft: Draft) -> tuple[bool, int]:
        tensors = [tensor for _, _, tensor in tensors_of(operator, draft.desc)]
        return not any(each.DataType.is_float for each in tensors), -len(tensors)

    return sorted(drafts, key=rank)[:1]


def _kept(case: Case, name: str) -> dict[str, Any] | None:
    data = case.data[name]
    if isinstance(data, Fill):
        return {"fill": {data.name: dict(data.arguments)} if data.arguments else data.name}
    if data.size > _LISTED:
        return None
    values = data.reshape(-1).tolist()
    return {"values": values}


def changes(
    operator: Operator, draft: Draft, parameter: Parameter, value: str, pool: Pool
) -> Iterator[Draft]:
    """Yield drafts in which a parameter may have `value`; the caller checks them."""
    name, desc = parameter.name, draft.desc
    if _sizes_follow(operator) and name not in _WITHOUT_SIZES and not name.startswith("data"):
        yield from _sized(operator, draft, name, value, pool)
    elif name.startswith("layout of "):
        tensor = name.removeprefix("layout of ")
        layouts = _CHOICES.get(value, (value,))
        for layout in layouts:
            yield _with_layout(operator, draft, tensor, layout)
        for other in _reshaped(operator, draft):
            yield _with_layout(operator, other, tensor, layouts[0])
        yield from _resized_alone(operator, draft, tensor, layouts[0])
    elif name == "owned inputs":
        for names in _owners(operator, desc) if value == "some" else [set()]:
            yield replace(draft, desc=_owned(operator, desc, names))
    elif name == "base alignment":
        bytes_ = 256 if value == "guaranteed" else 0
        yield replace(
            draft,
            desc=with_tensors(
                operator, desc, lambda _, t: replace(t, GuaranteedBaseOffsetAlignment=bytes_)
            ),
        )
    elif name == "in place":
        yield replace(draft, in_place=value == "true")
        if value == "true":
            yield from _of_one_layout(operator, draft)
    elif name == "data":
        yield replace(draft, data_class=value)
    elif name.startswith("data type"):
        yield _typed(operator, draft, parameter, value)
    elif "[" in name:
        yield from _element(draft, TensorRef.of(name), value, pool)
    elif name in desc or name in {each.name for each in operator.fields}:
        yield from _attribute(operator, draft, name, value, pool)
    else:
        yield from _family(operator, draft, name, value, pool)


def _sized(operator: Operator, draft: Draft, name: str, value: str, pool: Pool) -> Iterator[Draft]:
    """Yield drafts in which the parameter `name` may have `value`, with sizes that fit."""
    descs: Iterable[Desc] = ()
    if is_attention(operator):
        descs = with_other_heads(operator, draft.desc, name, value)
    elif moves_windows(operator):
        descs = with_other_moves(operator, draft.desc, name, value)
    elif operator.name == "SCATTER_ND":
        descs = with_other_tuples(draft.desc, name, value)
    elif value != ABSENT:
        descs = with_other_networks(operator, draft.desc, name, value)
    others = [draft, *(_refitted(operator, draft, desc) for desc in descs)]
    for other in others:
        if name.startswith("layout of "):
            for layout in _CHOICES.get(value, (value,)):
                yield _with_layout(operator, other, name.removeprefix("layout of "), layout)
        elif "[" in name:
            yield from _element(other, TensorRef.of(name), value, pool)
        elif value in (ABSENT, "true", "false") and not is_attention(operator):
            yield from _attribute(operator, other, name, value, pool)
        else:
            yield other


def _sizes_follow(operator: Operator) -> bool:
    named = is_recurrent(operator) or is_attention(operator) or moves_windows(operator)
    return named or operator.name == "SCATTER_ND"


def _refitted(operator: Operator, draft: Draft, desc: Desc) -> Draft:
    """Return a draft with other sizes, the layouts that it had, and data that fit."""
    data = dict(draft.data)
    for seed, (name, each, tensor) in enumerate(tensors_of(operator, desc, FieldKind.INPUT), 1):
        listed = data.get(name, {}).get("values")
        if listed is not None and len(listed) != tensor.ElementCount:
            del data[name]
        if name == "MaskTensor" and desc != draft.desc:
            data[name] = mask_values(desc)
        if name not in data and each.bounds is None and tensor.DataType.is_float:
            data[name] = {"fill": {"uniform": {"low": -1, "high": 1, "seed": seed}}}
    return Draft(
        with_tensors(operator, desc, partial(_laid_out, draft.desc)),
        data,
        draft.data_class,
        draft.in_place,
    )


def _with_layout(operator: Operator, draft: Draft, tensor: str, layout: str) -> Draft:
    names = {tensor}
    if draft.in_place:
        pairs = shared_buffers(operator, draft.desc).items()
        names |= {name for pair in pairs if tensor in pair for name in pair}

    def change(each: Field, t: TensorDesc) -> TensorDesc:
        return replace(t, Strides=_LAYOUTS[layout](t.Sizes)) if each.name in names else t

    return replace(draft, desc=with_tensors(operator, draft.desc, change))


def _resized_alone(operator: Operator, draft: Draft, name: str, layout: str) -> Iterator[Draft]:
    tensor = draft.desc.get(name)
    if isinstance(tensor, TensorDesc):
        for rank in dict.fromkeys((tensor.DimensionCount, 3, 4, 2, 1)):
            for sizes in {(*(1,) * (rank - 2), 2, 3)[-rank:], (1, 2, *(1,) * (rank - 3), 3)[:rank]}:
                other = replace(tensor, Sizes=sizes, Strides=None)
                changed = replace(draft, desc={**draft.desc, name: other})
                data = {k: v for k, v in draft.data.items() if k != name or "fill" in v}
                yield _with_layout(operator, replace(changed, data=data), name, layout)


def shared_buffers(operator: Operator, desc: Desc) -> dict[str, str]:
    """Return which input's buffer each output of a desc may share, by output."""
    pairs: dict[str, str] = {}
    for pair in operator.in_place:
        output, source = desc[pair.output], desc[pair.input]
        if isinstance(output, TensorDesc) and isinstance(source, TensorDesc):
            owned = "OWNED_BY_DML" in source.Flags or source.OverlappingStrides
            alike = replace(source, Flags=()) == replace(output, Flags=())
            free = pair.output not in pairs and pair.input not in pairs.values()
            if alike and not owned and free:
                pairs[pair.output] = pair.input
    return pairs


def _of_one_layout(operator: Operator, draft: Draft) -> Iterator[Draft]:
    for pair in operator.in_place:
        output, source = draft.desc[pair.output], draft.desc[pair.input]
        if isinstance(output, TensorDesc) and isinstance(source, TensorDesc):
            for name, other in ((pair.input, output), (pair.output, source)):
                changed = replace(draft.desc[name], Strides=other.Strides)
                yield replace(draft, desc={**draft.desc, name: changed}, in_place=True)


def _reshaped(
    operator: Operator, draft: Draft, rank: int | None = None, last: Sequence[int] = ()
) -> Iterator[Draft]:
    for desc in with_other_shapes(operator, draft.desc, rank, last):
        yield replace(draft, desc=with_tensors(operator, desc, partial(_laid_out, draft.desc)))


def _spread(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(2 * stride for stride in packed_strides(sizes))


_LAYOUTS: Final = {**LAYOUTS, "spread": _spread}
_CHOICES: Final = {
    "packed": ("implicit",),
    "padded": ("padded", "spread"),
}
"""Layouts to try for a class; `spread` gives gaps even to a tensor of one row."""


def _laid_out(before: Desc, each: Field, tensor: TensorDesc) -> TensorDesc:
    """Return a tensor of new sizes with the layout that the field has in the desc `before`."""
    value = before.get(each.name)
    if value is None:
        return tensor
    old = value[0] if isinstance(value, tuple) else value
    return replace(tensor, Strides=_LAYOUTS[layout_name(old)](tensor.Sizes))


def layout_name(tensor: TensorDesc) -> str:
    if tensor.Strides is None:
        return "implicit"
    return next(k for k, make in _LAYOUTS.items() if make(tensor.Sizes) == tensor.Strides)


def may_have(draft: Draft, name: str, value: str) -> bool:
    """Return whether the tensor of `name` can have the layout `value` without other sizes."""
    value_of = draft.desc.get(name.removeprefix("layout of "))
    tensor = value_of[0] if isinstance(value_of, tuple) and value_of else value_of
    if not name.startswith("layout of ") or not isinstance(tensor, TensorDesc):
        return False
    layouts = (_LAYOUTS[each] for each in _CHOICES.get(value, (value,)))
    return any(layout_class(tensor.Sizes, make(tensor.Sizes)) == value for make in layouts)


def _owners(operator: Operator, desc: Desc) -> list[set[str]]:
    """Return sets of inputs for DirectML to own: all but the first, or one of these."""
    names = [TensorRef.of(name).field for name, _, _ in tensors_of(operator, desc, FieldKind.INPUT)]
    others = names[1:] or names
    return [set(others), *({each} for each in others)]


def _owned(operator: Operator, desc: Desc, owned: set[str]) -> Desc:
    def change(each: Field, tensor: TensorDesc) -> TensorDesc:
        flags = ("OWNED_BY_DML",) if each.name in owned else ()
        return replace(tensor, Flags=flags) if each.kind is FieldKind.INPUT else tensor

    return with_tensors(operator, desc, change)


def _typed(operator: Operator, draft: Draft, parameter: Parameter, value: str) -> Draft:
    tensors = {each.field for each in parameter.assigned(value)}
    before = {t.DataType for n, f, t in tensors_of(operator, draft.desc) if f.name in tensors}
    desc = with_tensors(
        operator,
        draft.desc,
        lambda each, t: replace(t, DataType=DataType(value)) if each.name in tensors else t,
    )
    for each in operator.of_kind(FieldKind.ATTRIBUTE):
        if each.base_type == "DML_TENSOR_DATA_TYPE" and desc.get(each.name) in before:
            desc[each.name] = value
    data_class = draft.data_class
    if not DataType(value).is_float and data_class in REAL_CLASSES:
        data_class = "whole"
    return replace(draft, desc=desc, data_class=data_class)


def _attribute(
    operator: Operator, draft: Draft, name: str, value: str, pool: Pool
) -> Iterator[Draft]:
    desc = draft.desc
    if value == ABSENT:
        data = {k: v for k, v in draft.data.items() if TensorRef.of(k).field != name}
        yield replace(draft, desc={**desc, name: None}, data=data)
    elif value in ("true", "false"):
        yield replace(draft, desc={**desc, name: value == "true"})
    elif value in pool.nested:
        yield replace(draft, desc={**desc, name: pool.nested[value]})
    elif isinstance(desc.get(name), str):
        yield replace(draft, desc={**desc, name: value})
    else:
        yield from _family(operator, draft, name, value, pool)


def _element(draft: Draft, slot: TensorRef, value: str, pool: Pool) -> Iterator[Draft]:
    values = draft.desc.get(slot.field)
    nested = pool.nested.get(value)
    if nested is None or slot.index is None or not isinstance(values, tuple):
        return
    if slot.index < len(values):
        yield replace(draft, desc=slot.replaced(draft.desc, nested))


def _family(operator: Operator, draft: Draft, name: str, value: str, pool: Pool) -> Iterator[Draft]:
    """Yield drafts for a parameter that `schemas/combinations/` computes from fields."""
    if name == "axes":
        yield from _reduced(operator, draft, value)
    if has_windows(operator):
        # DirectML does not refuse outputs whose sizes do not fit the windows.
        for desc in with_other_windows(operator, draft.desc, name, value):
            other = replace(
                draft, desc=with_tensors(operator, desc, partial(_laid_out, draft.desc))
            )
            yield other
            if name in ("batches", "channels"):
                yield from _resized(operator, other, SIZES.get(value, (1, 2, 3, 7)), leading=2)
        return
    if "WindowSizes" in draft.desc:
        yield from _resized(operator, draft, SIZES.get(value, (1, 2, 3, 7)), leading=2)
        return
    names = {
        used
        for space in spaces_of(operator)
        for each in space.parameters
        if each.name == name
        for used in each.value.names
    }
    for used in sorted(names & pool.values.keys()):
        old = draft.desc.get(used)
        for other in [*pool.values[used], *((0, 1, -0.5, 0.75) if isinstance(old, float) else ())]:
            same = not isinstance(old, tuple) or len(old) == len(other)
            if other != old and same:
                yield replace(draft, desc={**draft.desc, used: other})
    if name == "dimensions":
        yield from _reshaped(operator, draft, rank=int(value))
    elif name in ("last size", "channels"):
        yield from _reshaped(operator, draft, last=SIZES[value] if name == "last size" else ())
    yield from _resized(operator, draft, SIZES.get(value, (1, 2, 3, 7)))
    if value == "yes":
        for size in (7, 33):
            desc = with_tensors(
                operator, draft.desc, lambda _, t, n=size: replace(t, Sizes=(*t.Sizes[:-2], n, n))
            )
            desc = with_tensors(operator, desc, partial(_laid_out, draft.desc))
            yield replace(draft, desc=desc)


def _reduced(operator: Operator, draft: Draft, value: str) -> Iterator[Draft]:
    """Yield drafts with other axes; outputs have size 1 along them, or the input's."""
    source = next(t for _, _, t in tensors_of(operator, draft.desc))
    rank = source.DimensionCount
    axes = {
        "all": tuple(range(rank)),
        "one": (rank - 1,),
        "neighbours": (rank - 2, rank - 1),
        "apart": (0, rank - 1),
    }[value]
    if len(set(axes)) < len(axes) or min(axes) < 0:
        return
    desc = dict(draft.desc)
    desc["Axes"] = axes
    for count, arrays in operator.count_fields.items():
        if "Axes" in arrays:
            desc[count] = len(axes)
    reduced = tuple(1 if at in axes else size for at, size in enumerate(source.Sizes))
    for sizes in (source.Sizes, reduced):

        def output(each: Field, tensor: TensorDesc, sizes: tuple[int, ...] = sizes) -> TensorDesc:
            return replace(tensor, Sizes=sizes) if each.kind is FieldKind.OUTPUT else tensor

        changed = with_tensors(operator, desc, output)
        yield replace(draft, desc=with_tensors(operator, changed, partial(_laid_out, draft.desc)))


def _resized(
    operator: Operator, draft: Draft, sizes: Sequence[int], leading: int | None = None
) -> Iterator[Draft]:
    """Yield drafts with a size replaced, in one dimension or wherever it occurs.

    Only the first `leading` dimensions are tried; by default all.
    """
    tensors = [t for _, _, t in tensors_of(operator, draft.desc)]
    seen: set[tuple[Any, ...]] = set()
    sizes_at = {
        (at - len(t.Sizes), size) for t in tensors for at, size in enumerate(t.Sizes[:leading])
    }
    for new in sizes:
        for at, old in sorted(sizes_at):
            for everywhere in (False, True):
                desc = with_tensors(
                    operator,
                    draft.desc,
                    lambda _, t, at=at, old=old, new=new, everywhere=everywhere: replace(
                        t,
                        Sizes=tuple(
                            new if n == old and (everywhere or i - len(t.Sizes) == at) else n
                            for i, n in enumerate(t.Sizes)
                        ),
                    ),
                )
                desc = with_tensors(operator, desc, partial(_laid_out, draft.desc))
                key = tuple(t.Sizes for _, _, t in tensors_of(operator, desc))
                if key not in seen:
                    seen.add(key)
                    yield replace(draft, desc=desc)
