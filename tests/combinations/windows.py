"""Give convolutions and poolings other windows, strides, padding and channels that fit.

A window moves over `wide` elements, and each of its positions gives one of the `narrow` elements.
A window of 3 elements and a stride of 2 give 3 narrow elements for 7 wide ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Final

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import FieldKind, Operator

__all__ = ["has_windows", "with_other_windows"]

_Sizes = tuple[int, ...]

_WIDE: Final = {"InputTensor", "OutputGradientTensor"}
_NARROW: Final = {"OutputTensor", "OutputIndicesTensor", "InputGradientTensor"}
"""With Direction BACKWARD, the input is narrow and the output wide."""
_STEPS: Final[Mapping[str, tuple[_Sizes, ...]]] = {
    "all 1": ((1, 1, 1),),
    "the same": ((2, 2, 2), (3, 3, 3)),
    "different": ((1, 2, 1), (1, 1, 2), (2, 3, 1)),
}
_PADDING: Final[Mapping[str, tuple[tuple[_Sizes, _Sizes], ...]]] = {
    "none": (((0, 0, 0), (0, 0, 0)),),
    "even": (((1, 1, 1), (1, 1, 1)), ((0, 1, 0), (0, 1, 0)), ((0, 0, 1), (0, 0, 1))),
    "uneven": (((0, 1, 0), (0, 0, 1)), ((0, 0, 0), (0, 1, 1)), ((0, 0, 1), (0, 0, 0))),
}
"""Padding before and after the elements to try, by class."""
_WINDOWS: Final[Mapping[str, tuple[_Sizes, ...]]] = {
    "one element": ((1, 1, 1),),
    "odd": ((3, 3, 3),),
    "even": ((2, 2, 2), (4, 4, 4)),
    "not square": ((1, 3, 2), (2, 1, 3)),
}
_SIZES: Final[Mapping[str, _Sizes]] = {
    "1": (1,),
    "prime": (7, 5, 3),
    "tile - 1": (31, 15),
    "tile": (32, 16, 128),
    "tile + 1": (33, 17),
    "large": (1024, 1031, 1025, 1029),
}
"""Last sizes and numbers of channels to try, by class."""
_GROUPS: Final = (1, 2, 4, 3, 5, 7, 15, 16, 31, 32, 64)
_USUAL: Final = (1, 2, 4, 8, 16, 32)
"""Numbers of groups that are not `unusual`."""

_CHANNELS: Final = (2, 3, 4, 6, 10, 7, 15, 31, 32, 33, 128, 64, 1024, 1)
_MOST_CHANNELS: Final = 120
"""How many choices of channels and groups are tried."""


@dataclass(frozen=True)
class _Windows:
    """A window and its moves; each field has a number for each spatial dimension.

    `start` and `end` are the padding before and after the wide elements.
    """

    wide: _Sizes
    window: _Sizes
    strides: _Sizes
    dilations: _Sizes
    start: _Sizes
    end: _Sizes

    @property
    def reach(self) -> _Sizes:
        """The elements that a window extends over: 5 for a window of 3 with a dilation of 2."""
        return tuple((w - 1) * d + 1 for w, d in zip(self.window, self.dilations, strict=True))

    @property
    def narrow(self) -> _Sizes:
        """The number of positions of the window."""
        ends = zip(self.wide, self.start, self.end, self.reach, self.strides, strict=True)
        return tuple((n + s + e - reach) // step + 1 for n, s, e, reach, step in ends)

    def wide_of(self, narrow: _Sizes) -> _Sizes:
        """Return how many elements these positions need, at least 1."""
        ends = zip(narrow, self.start, self.end, self.reach, self.strides, strict=True)
        return tuple(max(1, (n - 1) * step + reach - s - e) for n, s, e, reach, step in ends)


def has_windows(operator: Operator) -> bool:
    names = {each.name for each in operator.fields}
    return "Strides" in names and bool(names & {"WindowSize", "FilterTensor"})


def with_other_windows(operator: Operator, desc: Desc, name: str, value: str) -> Iterator[Desc]:
    """Yield descs in which the parameter `name` may have `value`; the caller checks them."""
    rank = int(value) if name == "dimensions" else _wide(operator, desc).DimensionCount
    changed = _of_rank(operator, desc, rank)
    windows = _read(operator, changed)
    if len({len(each) for each in vars(windows).values()}) > 1:
        return  # There are fewer strides or paddings than spatial dimensions.
    for other in _windows(windows, name, value):
        fitting = other
        if min(other.narrow) < 1:
            fitting = replace(other, wide=other.wide_of((1,) * len(other.wide)))
        small = replace(other, wide=other.wide_of((1,) * len(other.wide)))
        for each in dict.fromkeys((fitting, small)):
            yield from _channels(operator, _written(operator, changed, each), name, value)


def _windows(windows: _Windows, name: str, value: str) -> Iterator[_Windows]:
    spatial = len(windows.wide)
    if name in ("strides", "dilations"):
        for steps in _STEPS.get(value, ()):
            chosen = steps[:spatial]
            yield (
                replace(windows, strides=chosen)
                if name == "strides"
                else replace(windows, dilations=chosen)
            )
    elif name == "padding":
        for start, end in _PADDING.get(value, ()):
            yield replace(windows, start=start[:spatial], end=end[:spatial])
    elif name in ("window", "filter") and value == "as large as the input":
        for wide in (windows.wide, (3, 2, 2)[:spatial], (4, 5, 2)[:spatial]):
            yield replace(windows, wide=wide, window=wide, dilations=(1,) * spatial)
    elif name in ("window", "filter"):
        for sizes in _WINDOWS.get(value, ()):
            yield replace(windows, window=sizes[:spatial])
    elif name == "last size":
        for size in _SIZES.get(value, ()):
            yield from _of_last_size(windows, size)
    else:
        yield windows


def _of_last_size(windows: _Windows, size: int) -> Iterator[_Windows]:
    """Yield windows with which the last size of the output or the input may be `size`."""
    few = (1,) * (len(windows.wide) - 1)
    for leading in dict.fromkeys((windows.narrow[:-1], few)):
        if min(leading, default=1) > 0:
            yield replace(windows, wide=windows.wide_of((*leading, size)))
    wide = (*windows.reach[:-1], size)
    yield replace(windows, wide=wide, window=(*windows.window[:-1], size))
    if size == 1:
        gap = windows.reach[-1] - 1
        start, end = (*windows.start[:-1], gap // 2), (*windows.end[:-1], gap - gap // 2)
        yield replace(windows, wide=(*windows.reach[:-1], 1), start=start, end=end)
        high = tuple(n + 2 for n in windows.reach[:-1])
        yield replace(windows, wide=(*high, 1), start=start, end=end)
        one = (1,) * len(windows.wide)
        yield replace(windows, wide=(*windows.wide[:-1], 1), window=one)


def _roles(desc: Desc) -> tuple[set[str], set[str]]:
    if desc.get("Direction") == "BACKWARD":
        return {"OutputTensor"}, {"InputTensor"}
    return _WIDE, _NARROW


def _wide(operator: Operator, desc: Desc) -> TensorDesc:
    names = _roles(desc)[0]
    kinds = FieldKind.INPUT, FieldKind.OUTPUT
    tensors = (desc[each.name] for each in operator.of_kind(*kinds) if each.name in names)
    return next(each for each in tensors if isinstance(each, TensorDesc))


def _read(operator: Operator, desc: Desc) -> _Windows:
    wide = _wide(operator, desc).Sizes[2:]
    window = desc["WindowSize"] if "WindowSize" in desc else desc["FilterTensor"].Sizes[2:]
    ones = (1,) * len(wide)
    dilations = desc.get("Dilations") or ones
    steps = window, desc["Strides"], dilations, desc["StartPadding"], desc["EndPadding"]
    return _Windows(wide, *(each[: len(wide)] for each in steps))


def _written(operator: Operator, desc: Desc, windows: _Windows) -> dict[str, Any]:
    wide_names, narrow_names = _roles(desc)
    wide = windows.wide
    if desc.get("Direction") == "BACKWARD":
        wide = windows.wide_of(windows.narrow)
    values = {
        "WindowSize": windows.window,
        "Strides": windows.strides,
        "Dilations": windows.dilations,
        "StartPadding": windows.start,
        "EndPadding": windows.end,
        "OutputPadding": (0,) * len(wide),
    }
    # Convolutions of integers have two strides even for one spatial dimension.
    more = max(0, len(desc["Strides"]) - len(wide))
    values = {
        name: (*value, *((0 if "Padding" in name else 1,) * more)) for name, value in values.items()
    }
    changed = {**desc, **{name: value for name, value in values.items() if name in desc}}
    changed["DimensionCount"] = len(wide) + more
    spatial = dict.fromkeys(wide_names, wide) | dict.fromkeys(narrow_names, windows.narrow)
    if "WindowSize" not in desc:
        spatial["FilterTensor"] = windows.window
    for name, sizes in spatial.items():
        tensor = desc.get(name)
        if isinstance(tensor, TensorDesc):
            changed[name] = replace(tensor, Sizes=(*tensor.Sizes[:2], *sizes))
    return changed


def _of_rank(operator: Operator, desc: Desc, rank: int) -> dict[str, Any]:
    """Return the desc with another number of dimensions; added ones have size 1."""
    before = _wide(operator, desc).DimensionCount
    changed = dict(desc)
    if rank == before:
        return changed
    for each in operator.fields:
        value = desc.get(each.name)
        if isinstance(value, TensorDesc) and value.DimensionCount == before:
            sizes = _ranked(value.Sizes, rank, 2, 1)
            changed[each.name] = replace(value, Sizes=sizes, Strides=None)
        elif isinstance(value, tuple) and len(value) == before - 2:
            padding = "Padding" in each.name
            changed[each.name] = _ranked(value, rank - 2, 0, 0 if padding else 1)
    if changed.get("DimensionCount", before - 2) == before - 2:
        changed["DimensionCount"] = rank - 2
    return changed


def _ranked(sizes: _Sizes, rank: int, at: int, added: int) -> _Sizes:
    """Return `rank` sizes: insert `added` at index `at`, or remove sizes there."""
    more = rank - len(sizes)
    if more >= 0:
        return (*sizes[:at], *(added,) * more, *sizes[at:])
    return (*sizes[:at], *sizes[at - more :])


def _channels(operator: Operator, desc: Desc, name: str, value: str) -> Iterator[Desc]:
    """Yield descs with other channels and groups, if the parameter `name` is one of these."""
    if name not in ("groups", "input channels", "output channels") or "GroupCount" not in desc:
        yield desc
        return
    backward = desc.get("Direction") == "BACKWARD"
    old = desc["InputTensor"].Sizes[1], desc["OutputTensor"].Sizes[1], desc["GroupCount"]
    sizes = _SIZES.get(value, ())
    ins = sizes if name == "input channels" else (old[0], *_CHANNELS)
    outs = sizes if name == "output channels" else (old[1], *_CHANNELS)
    groups = sorted({old[2], *_GROUPS, *ins}, key=lambda n: (n != old[2], n))
    if value == "unusual":
        groups = [n for n in groups if n not in _USUAL]
    choices = ((a, b, n) for a, b, n in product(ins, outs, groups) if a % n == 0 and b % n == 0)
    if value == "unusual":
        choices = ((a, b, n) for a, b, n in choices if a != n)
    ranked = sorted(
        set(choices),
        key=lambda new: (sum(x != y for x, y in zip(new, old, strict=True)), sum(new), new),
    )
    for a, b, count in ranked[:_MOST_CHANNELS]:
        shape = (a, b // count) if backward else (b, a // count)
        channels = {
            "InputTensor": (desc["InputTensor"].Sizes[0], a),
            "OutputTensor": (desc["OutputTensor"].Sizes[0], b),
            "FilterTensor": shape,
            "BiasTensor": (1, b),
            "FilterScaleTensor": (1, b),
            "FilterZeroPointTensor": (1, b),
        }
        yield _with_channels({**desc, "GroupCount": count}, channels)


def _with_channels(desc: dict[str, Any], channels: Mapping[str, _Sizes]) -> Desc:
    """Give tensors these first two sizes, except one scale or zero point of the whole filter."""
    for name, leading in channels.items():
        tensor = desc.get(name)
        one_for_all = name.startswith("Filter") and name != "FilterTensor"
        if isinstance(tensor, TensorDesc) and not (one_for_all and tensor.ElementCount == 1):
            desc[name] = replace(tensor, Sizes=(*leading, *tensor.Sizes[2:]))
    return desc
