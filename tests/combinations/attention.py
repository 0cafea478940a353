"""Change a MULTIHEAD_ATTENTION desc to other tensors and sizes that fit together.

Sizes follow from a few numbers: 2 batches of 3 queries with 2 heads of 4 elements give a
QueryTensor of 2x3x8.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import Operator
from dmlconf.tensors.datatypes import DataType

__all__ = ["MOST_SCORES", "is_attention", "mask_values", "scores", "with_other_heads"]

_QUERIES: Final = ("QueryTensor", "KeyTensor", "ValueTensor")
_FORMS: Final = (
    _QUERIES,
    ("QueryTensor", "StackedKeyValueTensor"),
    ("ValueTensor", "StackedQueryKeyTensor"),
    ("StackedQueryKeyValueTensor",),
)
"""Sets of tensors; each set holds all queries, keys and values."""

_PAST: Final = {"PastKeyTensor", "PastValueTensor"}
_PRESENT: Final = {"OutputPresentKeyTensor", "OutputPresentValueTensor"}
MOST_SCORES: Final = 1_100_000
"""Judging more scores takes more than 250 MiB."""

_LENGTHS: Final = "PastSequenceLengthsTensor"
"""Made cases have lengths of 0; with others, kernels read keys that no case has written."""

_POSITIONS: Final = "RelativePositionBiasTensor"
_OF_HEADS: Final = (_POSITIONS, *sorted(_PAST | _PRESENT))
"""Tensors of four dimensions; the second is that of heads."""

_MASKS: Final = (
    "BOOLEAN",
    "KEY_SEQUENCE_LENGTH",
    "KEY_SEQUENCE_END_START",
    "KEY_QUERY_SEQUENCE_LENGTH_START_END",
)
_SIZES: Final = {
    "1": (1,),
    "prime": (7, 5),
    "tile - 1": (15, 31),
    "tile": (16, 32),
    "tile + 1": (33, 17),
    "large": (1024,),
}

_HEADS: Final = {
    "1": ((1, 1),),
    "prime": ((1, 7), (7, 1), (5, 1)),
    "tile - 1": ((1, 15), (3, 5)),
    "tile": ((1, 16), (2, 8)),
    "tile + 1": ((1, 17), (3, 11)),
    "large": ((1, 1024), (2, 512)),
}
"""Numbers of heads and of elements of a head to try, by class of their product."""


@dataclass(frozen=True)
class _Attention:
    """The numbers from which the sizes of all tensors follow.

    Attributes:
        form: the tensors that hold queries, keys and values.
        others: the other optional tensors, without the mask.
        mask: the value of MaskType.
        rank: the dimensions of the output.
        keys: the keys of a batch, without those of PastKeyTensor.
        past: the keys of PastKeyTensor.
        shared: the heads of keys and values; `heads` or a divisor of it.
        head: the elements of a query in one head.
        value: the elements of a value in one head.
    """

    form: tuple[str, ...]
    others: frozenset[str]
    mask: str
    rank: int
    batches: int
    queries: int
    keys: int
    past: int
    heads: int
    shared: int
    head: int
    value: int

    @property
    def total(self) -> int:
        return self.past + self.keys


def is_attention(operator: Operator) -> bool:
    return operator.name.startswith("MULTIHEAD_ATTENTION")


def scores(operator: Operator, desc: Desc) -> int:
    """Return how many scores attention computes; 0 for other operators."""
    if not is_attention(operator):
        return 0
    now = _read(desc)
    return now.batches * now.heads * now.queries * now.total


def with_other_heads(operator: Operator, desc: Desc, name: str, value: str) -> Iterator[Desc]:
    """Yield descs in which the parameter `name` may have `value`; the caller checks them."""
    yield from _of_other_sizes(operator, desc, name, value)
    if value in ("1", "channels-last"):
        # With five dimensions, the second size is the number of batches, not of heads.
        for each in _of_other_sizes(operator, desc, name, value):
            yield {**each, **{tensor: _of_five_sizes(each.get(tensor)) for tensor in _OF_HEADS}}


def _of_five_sizes(tensor: Any) -> Any:
    """Return a tensor of four sizes with a size of 1 before them, and others unchanged."""
    if isinstance(tensor, TensorDesc) and tensor.DimensionCount == 4:
        return replace(tensor, Sizes=(1, *tensor.Sizes), Strides=None)
    return tensor


def _of_other_sizes(operator: Operator, desc: Desc, name: str, value: str) -> Iterator[Desc]:
    now = _read(desc)
    for other in _others(now, name, value):
        for sized in (other, replace(other, batches=max(2, other.batches))):
            yield _with_sizes(operator, desc, _fitting(operator, sized))
        roomy = replace(
            other,
            batches=max(2, other.batches),
            queries=max(3, other.queries),
            keys=max(3, other.keys),
            heads=other.heads if other.heads > 1 else 2,
            head=max(2, other.head),
            value=max(2, other.value),
        )
        yield _with_sizes(operator, desc, _fitting(operator, roomy))


def _others(now: _Attention, name: str, value: str) -> Iterator[_Attention]:
    tensor = name.removeprefix("layout of ")
    if tensor.endswith("Tensor") and tensor != "OutputTensor":
        yield from _without_tensor(now, tensor) if value == "absent" else _with_tensor(now, tensor)
    elif name == "MaskType":
        others = now.others - {_LENGTHS}
        yield replace(now, mask=value, others=others)
    elif name == "dimensions":
        yield replace(now, rank=int(value))
    elif name == "last size":
        for heads, size in _HEADS[value]:
            yield replace(now, heads=heads, shared=heads, head=size, value=size)
            yield replace(now, heads=heads, shared=heads, head=1, value=size)
            yield replace(now, heads=heads, shared=heads, head=2, value=size)
            if heads > 1:
                yield replace(now, heads=heads, shared=1, head=2, value=size)
            few = replace(now, heads=heads, shared=heads, head=2, value=size, batches=1)
            yield replace(few, queries=2, keys=3)
            if now.past:
                yield replace(few, queries=2, keys=3, past=2)
    elif name == "heads":
        for heads in (1,) if value == "1" else (2, 3, 5, 7):
            yield replace(now, heads=heads, shared=heads)
            if (now.heads * now.value) % heads == 0:
                size = now.heads * now.value // heads
                yield replace(now, heads=heads, shared=heads, head=size, value=size)
    elif name == "batches":
        yield replace(now, batches=1 if value == "1" else 3)
    elif name == "queries":
        # Stacked tensors have as many keys as queries. A position bias is soon too large.
        few = replace(now, batches=1, heads=1, shared=1, head=2, value=2)
        lean = replace(few, others=now.others - {"BiasTensor", _POSITIONS})
        for size in _SIZES[value]:
            yield replace(now, queries=size)
            yield replace(now, queries=size, keys=size)
            for each in (few, lean, replace(few, heads=2, shared=2)):
                yield replace(each, queries=size)
                yield replace(each, queries=size, keys=3)
    else:
        yield now


def _with_tensor(now: _Attention, tensor: str) -> Iterator[_Attention]:
    forms = [form for form in _FORMS if tensor in form]
    for form in (now.form,) if now.form in forms else forms:
        yield replace(now, form=form)
    if tensor in _PAST:
        yield replace(now, others=now.others - {_LENGTHS} | _PAST, past=now.past or 2)
    elif tensor == "MaskTensor":
        for mask in (now.mask,) if now.mask != "NONE" else _MASKS:
            yield replace(now, mask=mask, others=now.others - {_LENGTHS})
    elif tensor == _LENGTHS:
        others = now.others - _PAST - {_POSITIONS} | _PRESENT | {_LENGTHS}
        yield replace(now, others=others, mask="NONE", past=0)
    elif not forms:
        yield replace(now, others=now.others | {tensor})
        yield replace(now, others=now.others - {_LENGTHS} | {tensor})


def _without_tensor(now: _Attention, tensor: str) -> Iterator[_Attention]:
    if tensor in now.form:
        for form in _FORMS:
            if tensor not in form:
                yield replace(now, form=form)
    elif tensor in _PAST:
        yield replace(now, others=now.others - _PAST, past=0)
    elif tensor == "MaskTensor":
        yield replace(now, mask="NONE")
    else:
        yield replace(now, others=now.others - {tensor})
        yield replace(now, others=now.others - {tensor, _LENGTHS})


def _fitting(operator: Operator, now: _Attention) -> _Attention:
    """Return numbers that are equal where a stacked tensor has one size for both."""
    fitting = now
    if "StackedQueryKeyTensor" in now.form or len(now.form) == 1:
        fitting = replace(fitting, keys=fitting.queries, shared=fitting.heads)
    if len(now.form) == 1 or "StackedKeyValueTensor" in now.form:
        fitting = replace(fitting, head=fitting.value)
    if fitting.heads % fitting.shared or operator.name == "MULTIHEAD_ATTENTION":
        fitting = replace(fitting, shared=fitting.heads)
    return fitting


def _read(desc: Desc) -> _Attention:
    form = next(form for form in _FORMS if all(desc.get(name) is not None for name in form))
    others = {*_PAST, *_PRESENT, "BiasTensor", _POSITIONS, _LENGTHS}
    heads = desc.get("HeadCount") or desc["QueryHeadCount"]
    output = desc["OutputTensor"].Sizes
    shared = desc.get("KeyValueHeadCount", heads)
    if form[0] == "QueryTensor":
        head = desc["QueryTensor"].Sizes[-1] // heads
    else:
        head = desc[form[-1]].Sizes[4]
    key = desc.get("KeyTensor")
    keys = output[-2] if key is None else key.Sizes[-2]
    if "StackedKeyValueTensor" in form:
        keys = desc["StackedKeyValueTensor"].Sizes[1]
    past = desc.get("PastKeyTensor")
    return _Attention(
        form=form,
        others=frozenset(name for name in others if desc.get(name) is not None),
        mask=desc["MaskType"],
        rank=len(output),
        batches=output[-3],
        queries=output[-2],
        keys=keys,
        past=0 if past is None else past.Sizes[-2],
        heads=heads,
        shared=shared,
        head=head,
        value=output[-1] // heads,
    )


def _with_sizes(operator: Operator, desc: Desc, now: _Attention) -> Desc:
    changed: dict[str, Any] = dict(desc)
    names = {*now.form, *now.others, "OutputTensor"}
    if now.mask != "NONE":
        names.add("MaskTensor")
    for name, sizes in _sizes(now).items():
        tensor = desc.get(name)
        if name not in names:
            if name in {each.name for each in operator.fields}:
                changed[name] = None
        elif isinstance(tensor, TensorDesc):
            more = 0 if name in (*now.form, "OutputTensor") else len(tensor.Sizes) - len(sizes)
            changed[name] = replace(tensor, Sizes=(*(1,) * more, *sizes))
        else:
            integers = name in ("MaskTensor", _LENGTHS)
            data_type = DataType.INT32 if integers else desc["OutputTensor"].DataType
            changed[name] = TensorDesc(data_type, sizes)
    changed["MaskType"] = now.mask
    if "HeadCount" in desc:
        changed["HeadCount"] = now.heads
    else:
        changed |= {"QueryHeadCount": now.heads, "KeyValueHeadCount": now.shared}
    return changed


def _sizes(now: _Attention) -> dict[str, tuple[int, ...]]:
    lead = (1,) * (now.rank - 3)
    batches, queries, keys, total = now.batches, now.queries, now.keys, now.total
    masks = {
        "BOOLEAN": (batches, now.heads, queries, total),
        "KEY_SEQUENCE_LENGTH": (1, batches),
        "KEY_SEQUENCE_END_START": (2, batches),
        "KEY_QUERY_SEQUENCE_LENGTH_START_END": (3 * batches + 2,),
    }
    return {
        "QueryTensor": (*lead, batches, queries, now.heads * now.head),
        "KeyTensor": (*lead, batches, keys, now.shared * now.head),
        "ValueTensor": (*lead, batches, keys, now.shared * now.value),
        "StackedQueryKeyTensor": (batches, queries, now.heads, 2, now.head),
        "StackedKeyValueTensor": (batches, keys, now.shared, 2, now.head),
        "StackedQueryKeyValueTensor": (batches, queries, now.heads, 3, now.head),
        "BiasTensor": ((now.heads + now.shared) * now.head + now.shared * now.value,),
        "MaskTensor": masks.get(now.mask, ()),
        _POSITIONS: (batches, now.heads, queries, total),
        "PastKeyTensor": (batches, now.shared, now.past, now.head),
        "PastValueTensor": (batches, now.shared, now.past, now.value),
        _LENGTHS: (batches,),
        "OutputTensor": (*lead, batches, queries, now.heads * now.value),
        "OutputPresentKeyTensor": (batches, now.shared, total, now.head),
        "OutputPresentValueTensor": (batches, now.shared, total, now.value),
    }


def mask_values(desc: Desc) -> dict[str, Any]:
    """Return the data of a mask that may hide some keys, as a case file has it."""
    now = _read(desc)
    batches, total = now.batches, now.total
    fewer = [max(1, total - at % 3) for at in range(batches)]
    match now.mask:
        case "BOOLEAN":
            return {"fill": {"integers": {"low": 0, "high": 1, "seed": 5}}}
        case "KEY_SEQUENCE_LENGTH":
            return {"values": fewer}
        case "KEY_SEQUENCE_END_START":
            return {"values": [*fewer, *(min(at % 2, end - 1) for at, end in enumerate(fewer))]}
    starts = [min(at * now.queries, total) for at in range(batches + 1)]
    firsts = [min(at * total, total) for at in range(batches + 1)]
    return {"values": [*fewer, *starts, *firsts]}
