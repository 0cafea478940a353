"""A fault of FLOAT16 means, sums and products: DirectML truncates the result of each pass.

In FLOAT16, a pass that adds 16384 and 1 gives 16384, so 16384 + 1 - 16384 becomes 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice, permutations, product
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.faults.computed import Computed
from dmlconf.faults.normalization import axes_of_mean, divides_by_root
from dmlconf.permitted.activation.fused import fused_error_scale
from dmlconf.permitted.numbers.error_scale import ErrorScale, store_sizes
from dmlconf.permitted.numbers.half import toward_zero
from dmlconf.permitted.numbers.passes import passes_over
from dmlconf.precision.allowance import SumErrors
from dmlconf.reference.activation.fused import fused
from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.layout import packed_strides

__all__ = ["Combine", "combinations_in_passes", "first_pass_truncated"]

Combine = Callable[[Array], Array]
"""Sums, averages or multiplies elements along the operator's axes, which keep a size of 1."""

_Pass = Callable[..., Array]
"""Combines elements along one axis or several, and truncates the results to FLOAT16. Its arguments
are those of `numpy.sum`."""

_Axes = tuple[int, ...]
"""Some axes, or all axes in some order."""

_Division = tuple[int, int]
"""Two counts: the blocks of adjacent elements, and the elements of a block that the first pass
combines into one, at equal distances. With (2, 64), 256 rows are two blocks of 128. In the first
block, rows 0, 2, ..., 126 become one, and rows 1, 3, ..., 127 another."""

_Passes = Sequence[tuple[Sequence[int], _Division]]
"""Groups of adjacent axes in the order of their passes, each with its division."""

_OPERATIONS: Final[Mapping[str, Callable[..., Array]]] = {
    "AVERAGE": np.mean,
    "MULTIPLY": np.prod,
    "SUM": np.sum,
    "SUM_SQUARE": np.sum,
}
"""What combines elements or, in SUM_SQUARE, their squares, by the Function of REDUCE."""

_WHOLE: Final = (1, 1)
"""The division if there is only one pass."""

_MOST_AT_FIRST: Final = 64
"""The most elements that a first pass combines into one."""

_MOST_COMBINATIONS: Final = 48
"""The most ways to divide elements into passes that are tried of each kind, such as `_in_turn`."""

_FLOAT32_LOSS: Final = 2.0**-22
"""What a few roundings of FLOAT32 may lose, as a share of the terms."""

_ROUNDINGS: Final = (1.0, 1 + _FLOAT32_LOSS)
"""Factors of the result of a pass before it is truncated. Errors of FLOAT32 may lift it to the
next FLOAT16 number: then 4.1562498 becomes 4.15625, not 4.15234."""


def first_pass_truncated(case: Case) -> Computed | None:
    """Return the outputs of REDUCE or a normalization in FLOAT16 if each pass is truncated.

    The first pass along axes before the last combines 64 elements, or a smaller power of two of
    them, at equal distances. The second pass combines the results. Of 6 rows, 0 and 3, 1 and 4, and
    2 and 5 are added first. Large tensors are divided into blocks: of 256 rows with 128 columns,
    rows 0, 2, ..., 126 are added first, and rows 128, 130, ..., 254. Since the numbers depend on
    the sizes, many ways are tried. Groups of adjacent axes have their passes one after the other.

    A variance also has two passes along the last axes. The mean or the variance may have one pass
    where the other has two. None for other data types and functions, and for REDUCE if one pass is
    enough.
    """
    desc, inputs = case.desc, case.inputs()
    tensor, function = inputs["InputTensor"], desc.get("Function", "AVERAGE")
    if tensor.dtype != np.float16 or function not in _OPERATIONS:
        return None
    each: list[Callable[[], Computed]]
    if case.operator_name == "REDUCE":
        combinations = combinations_in_passes(
            desc["InputTensor"], axes_of_mean(desc), _OPERATIONS[function]
        )
        each = [partial(_reduced, desc, inputs, combination) for combination in combinations]
    else:
        each = [
            partial(computed, desc, inputs, *pair)
            for computed in _functions(case)
            for pair in _means_and_variances(desc)
        ]
    if not each:
        return None
    return replace(each[0](), others=lambda: (other() for other in each[1:]))


def _functions(case: Case) -> list[Callable[..., Computed]]:
    """Return the functions that compute the outputs of a normalization from a mean and a variance.

    Measured where FusedAddTensor has another layout: what it is added to is first stored in
    FLOAT16.
    """
    if case.operator_name != "BATCH_NORMALIZATION_TRAINING":
        return [_normalized]
    added = case.desc.get("FusedAddTensor") is not None
    return [_trained, partial(_trained, stored=True)] if added else [_trained]


def _means_and_variances(desc: Desc) -> list[tuple[Combine, Combine]]:
    """Return the pairs of functions that average elements for a mean, and squares for a variance.

    Measured on DirectML 1.8.0 and 1.9.1. Along 64 adjacent elements, the mean has one pass. The
    first pass of the variance combines elements 0, 8, 16, ..., 56. Along axes 0 and 6 of {5, 17, 1,
    3, 4, 1, 5}, the mean has two passes and the variance one.
    """
    tensor, pairs = desc["InputTensor"], list[tuple[Combine, Combine]]()
    for combine, axes in _variants(tensor, axes_of_mean(desc), np.mean):
        one_pass = partial(_in_groups, groups=(axes,), combine=combine)
        in_turn = list(islice(_of_both(tensor, axes, combine, one_pass), _MOST_COMBINATIONS))
        at_once = [(way, way) for way in _with_rest_at_once(tensor, axes, combine)]
        pairs += in_turn
        pairs += [(one_pass, variance) for mean, variance in in_turn if mean is not one_pass]
        pairs.append((one_pass, one_pass))
        pairs += at_once
        pairs += [(one_pass, variance) for _, variance in at_once]
        pairs += [(mean, one_pass) for mean, _ in (*in_turn, *at_once) if mean is not one_pass]
    return pairs


def _of_both(
    tensor: TensorDesc, axes: _Axes, combine: _Pass, one_pass: Combine
) -> Iterator[tuple[Combine, Combine]]:
    """Yield pairs of `_means_and_variances` in which each group of axes has passes of its own.

    The variance has several passes.
    """
    # Measured with channels last: only the variance has two passes along axes 1, 2 and 3.
    adjacent = len(passes_over(axes)) == 1
    for way in _in_two_passes(tensor.Sizes, axes, combine):
        yield one_pass if adjacent else way, way
    for order in _orders(tensor):
        sizes = [tensor.Sizes[axis] for axis in order]
        for passes in _possible_passes(tensor.Sizes, order, axes, side_by_side=True):
            first_of_mean = [
                (group, _WHOLE if _last(sizes, group) else division) for group, division in passes
            ]
            mean, variance = (
                partial(_in_order, order=order, passes=each, combine=combine)
                for each in (first_of_mean, passes)
            )
            yield mean, variance


def combinations_in_passes(
    tensor: TensorDesc, axes: Collection[int], operation: Callable[..., Array]
) -> list[Combine]:
    """Return the functions that combine FLOAT64 elements of a tensor along axes in passes.

    The results of each pass are truncated to FLOAT16. The list is empty if there is one pass.

    Args:
        operation: `numpy.sum`, `numpy.mean` or `numpy.prod`.
    """
    return [
        way
        for combine, along in _variants(tensor, axes, operation)
        for way in (
            *islice(_in_turn(tensor, along, combine), _MOST_COMBINATIONS),
            *_with_rest_at_once(tensor, along, combine),
        )
    ]


def _in_turn(tensor: TensorDesc, axes: _Axes, combine: _Pass) -> Iterator[Combine]:
    """Yield functions in which each group of axes has passes of its own."""
    if len(passes_over(axes)) > 1:
        yield from _in_two_passes(tensor.Sizes, axes, combine)
    for order in _orders(tensor):
        for passes in _possible_passes(tensor.Sizes, order, axes):
            yield partial(_in_order, order=order, passes=passes, combine=combine)


def _variants(
    tensor: TensorDesc, axes: Collection[int], operation: Callable[..., Array]
) -> Iterator[tuple[_Pass, _Axes]]:
    """Yield functions of one pass, each with the axes along which a kernel may combine elements.

    The axes are the given ones, without and with all others of size 1. Measured on DirectML 1.9.1:
    a mean of {7, 16, 1, 2, 24, 1} along axes 0, 1 and 3 is computed as if axis 2 did not keep axes
    1 and 3 apart.
    """
    of_one = {axis for axis, size in enumerate(tensor.Sizes) if size == 1}
    alternatives = dict.fromkeys(tuple(sorted(each)) for each in ({*axes}, {*axes, *of_one}))
    for factor, along in product(_ROUNDINGS, alternatives):
        yield partial(_truncated, operation=operation, factor=factor), along


def _truncated(
    values: Array,
    axis: int | _Axes,
    *,
    operation: Callable[..., Array],
    factor: float,
    keepdims: bool = False,
) -> Array:
    return toward_zero(operation(values, axis=axis, keepdims=keepdims) * factor)


def _in_two_passes(sizes: Sequence[int], axes: _Axes, combine: _Pass) -> Iterator[Combine]:
    """Yield functions with a pass along some first axes and one along the others, in either order.

    If first axes differ from others only by axes of size 1, they are not tried again.

    Measured on DirectML 1.8.2: of {16, 9, 2, 2}, means along axes 0, 1 and 3 are those along axis 0
    and then along 1 and 3; of {12, 5, 3, 4}, along 0 and 1 and then along 3.
    """
    ordered, tried = tuple(sorted(set(axes))), set[int]()
    for count in range(1, len(ordered)):
        first, rest = ordered[:count], ordered[count:]
        elements = math.prod(sizes[axis] for axis in first)
        if elements in tried:
            continue
        tried.add(elements)
        for groups in ((first, rest), (rest, first)):
            yield partial(_in_groups, groups=groups, combine=combine)


def _with_rest_at_once(tensor: TensorDesc, axes: _Axes, combine: _Pass) -> Iterator[Combine]:
    """Yield functions with a first pass along some adjacent axes, and one pass for all the rest.

    They have a limit of their own, so that none of the other ways is left out for them.

    Measured on DirectML 1.8.0 and 1.9.1. For means of {320, 8, 3} along axes 0 and 2, the first
    pass averages 64 rows at equal distances. The second averages the 5 * 3 = 15 means of each
    channel.
    """
    combinations = (
        partial(
            _first_and_rest,
            order=order,
            group=group,
            division=division,
            along=tuple(at for each in groups for at in each),
            combine=combine,
        )
        for order in _orders(tensor)
        for groups in [passes_over([at for at, axis in enumerate(order) if axis in axes])]
        if len(groups) > 1
        for group in groups
        for division in _divisions([tensor.Sizes[axis] for axis in order], group)
        if division[1] > 1
    )
    yield from islice(combinations, _MOST_COMBINATIONS)


def _orders(tensor: TensorDesc) -> Iterator[_Axes]:
    """Yield the orders in which kernels take the axes: by stride, and as declared."""
    declared = tuple(range(len(tensor.Sizes)))
    strides = tensor.Strides or packed_strides(tensor.Sizes)
    yield from dict.fromkeys([tuple(sorted(declared, key=lambda axis: -strides[axis])), declared])


def _possible_passes(
    sizes: Sequence[int], order: _Axes, axes: Collection[int], *, side_by_side: bool = False
) -> Iterator[_Passes]:
    """Yield the ways to divide elements along some axes into passes; none if there is one pass.

    Args:
        side_by_side: whether elements that lie side by side have two passes, too.
    """
    sizes = [sizes[axis] for axis in order]
    groups = passes_over([at for at, axis in enumerate(order) if axis in axes])
    for succession in permutations(groups):
        choices = [
            [_WHOLE] if _last(sizes, group) and not side_by_side else _divisions(sizes, group)
            for group in succession
        ]
        for divisions in product(*choices):
            if len(groups) > 1 or any(division != _WHOLE for division in divisions):
                yield tuple(zip(succession, divisions, strict=True))


def _last(sizes: Sequence[int], group: Sequence[int]) -> bool:
    """Return whether the elements along adjacent axes lie side by side."""
    return math.prod(sizes[group[-1] + 1 :]) == 1


def _divisions(sizes: Sequence[int], group: Sequence[int]) -> list[_Division]:
    """Return the possible divisions of the elements along adjacent axes; the last is one pass.

    Measured on DirectML 1.8.0: a first pass combines at most 64 elements. There are several blocks
    only if it combines 64; their number is then a power of two.
    """
    count = math.prod(sizes[axis] for axis in group)
    powers = [1 << bits for bits in range(count.bit_length()) if count % (1 << bits) == 0]
    firsts = [power for power in reversed(powers) if power <= _MOST_AT_FIRST and power < count]
    blocks = [power for power in powers if power > 1 and count % (power * _MOST_AT_FIRST) == 0]
    divisions = [(1, first) for first in firsts]
    return [*divisions[:1], *((block, _MOST_AT_FIRST) for block in blocks), *divisions[1:]] or [
        _WHOLE
    ]


def _in_groups(values: Array, *, groups: Sequence[_Axes], combine: _Pass) -> Array:
    for group in groups:
        values = combine(values, group, keepdims=True)
    return values


def _in_order(values: Array, *, order: _Axes, passes: _Passes, combine: _Pass) -> Array:
    values = values.transpose(order)
    for group, (blocks, first) in passes:
        before, after = values.shape[: group[0]], values.shape[group[-1] + 1 :]
        axis, parts = len(before), values.reshape(*before, -1, *after)
        if first > 1:
            alike = values.reshape(*before, blocks, first, -1, *after)
            parts = combine(alike, axis + 1).reshape(*before, -1, *after)
        parts = combine(parts, axis)
        values = parts.reshape(*before, *(1 for _ in group), *after)
    return values.transpose(np.argsort(order))


def _first_and_rest(
    values: Array,
    *,
    order: _Axes,
    group: Sequence[int],
    division: _Division,
    along: _Axes,
    combine: _Pass,
) -> Array:
    values = values.transpose(order)
    before, after = values.shape[: group[0]], values.shape[group[-1] + 1 :]
    alike = values.reshape(*before, *division, -1, *after)
    parts = combine(alike, len(before) + 1)
    # The rest of the group takes the place of its first axis.
    ones = (1 for _ in group[1:])
    parts = parts.reshape(*before, -1, *ones, *after)
    combined = combine(parts, along, keepdims=True)
    return combined.transpose(np.argsort(order))


@np.errstate(all="ignore")
def _reduced(desc: Desc, inputs: Mapping[str, Array], combine: Combine) -> Computed:
    values = inputs["InputTensor"].astype(np.float64)
    if desc["Function"] == "SUM_SQUARE":
        values = np.square(values)
    results, sizes = combine(values).astype(np.float16), combine(np.abs(values))
    return Computed({"OutputTensor": results}, terms={"OutputTensor": SumErrors(sizes)})


@np.errstate(all="ignore")
def _normalized(
    desc: Desc, inputs: Mapping[str, Array], mean: Combine, of_variance: Combine
) -> Computed:
    """Return the output of MEAN_VARIANCE_NORMALIZATION or MEAN_VARIANCE_NORMALIZATION1.

    The arguments are those of `_trained`.
    """
    values = inputs["InputTensor"].astype(np.float64)
    centred = values - mean(values)
    root: Any = 1.0
    if divides_by_root(desc):
        root = np.sqrt(of_variance(np.square(centred)) + single(desc["Epsilon"]))
    sums, sizes = _scaled(desc, inputs, centred / root, _sizes(values, centred) / root)
    activated, errors = _activated(desc, sums, ErrorScale(sizes))
    results = toward_zero(activated).astype(np.float16)
    return Computed({"OutputTensor": results}, terms={"OutputTensor": errors})


@np.errstate(all="ignore")
def _trained(
    desc: Desc,
    inputs: Mapping[str, Array],
    mean: Combine,
    of_variance: Combine,
    *,
    stored: bool = False,
) -> Computed:
    """Return the outputs of BATCH_NORMALIZATION_TRAINING.

    Args:
        mean: averages the elements.
        of_variance: averages the squares.
        stored: whether FLOAT16 holds what FusedAddTensor is added to.
    """
    values = inputs["InputTensor"].astype(np.float64)
    averaged = mean(values)
    centred = values - averaged
    variance = of_variance(np.square(centred))
    root = np.sqrt(variance + single(desc["Epsilon"]))
    sums, sizes = _scaled(desc, inputs, centred / root, _sizes(values, centred) / root)
    in_doubt: Array | None = None
    if desc.get("FusedAddTensor") is not None:
        added = inputs["FusedAddTensor"].astype(np.float64)
        held, in_doubt = _held(sums, sizes) if stored else (sums, None)
        sums, sizes = held + added, sizes + np.abs(added)
    activated, errors = _activated(desc, sums, ErrorScale(sizes, in_doubt))
    outputs = {
        "OutputTensor": toward_zero(activated),
        "OutputMeanTensor": averaged,
        "OutputVarianceTensor": variance,
    }
    return Computed(
        {name: values.astype(np.float16) for name, values in outputs.items()},
        terms={
            "OutputTensor": errors,
            "OutputMeanTensor": SumErrors(mean(np.abs(values))),
            "OutputVarianceTensor": SumErrors(variance),
        },
    )


def _held(sums: Array, sizes: Array) -> tuple[Array, Array]:
    """Return sums truncated to FLOAT16, and the field `stored` of their errors.

    It is 0 unless errors of FLOAT32 may take the sum to the next FLOAT16 number.
    """
    least, greatest = (toward_zero(sums + side * _FLOAT32_LOSS * sizes) for side in (-1, 1))
    return toward_zero(sums), np.where(least == greatest, 0.0, store_sizes(sums))


def _sizes(values: Array, centred: Array) -> Array:
    """Return the sums of the magnitudes of each value and of the mean."""
    sizes: Array = np.abs(values) + np.abs(centred - values)
    return sizes


def _activated(desc: Desc, sums: Array, errors: ErrorScale) -> tuple[Array, SumErrors]:
    """Return the fused activation of sums and its errors, or both as they are without one.

    FLOAT16 holds the activation's input, truncated, but for LEAKY_RELU. Measured on DirectML 1.9.1
    with 12 activations.
    """
    activation = desc.get("FusedActivation")
    if activation is None:
        return sums, errors
    if activation["operator"] != "ACTIVATION_LEAKY_RELU":
        sums = toward_zero(sums)
    sizes = fused_error_scale(sums, errors, activation, np.dtype(np.float16)).sums
    stored = errors.stored
    if stored is not None:
        # The type FLOAT32 leaves out the store of the activation's input, which is truncated above.
        after = fused_error_scale(sums, errors, activation, np.dtype(np.float32))
        stored = np.where(stored > 0, 0.0 if after.stored is None else after.stored, 0.0)
    return fused(sums, activation), SumErrors(sizes, stored)


def _scaled(
    desc: Desc, inputs: Mapping[str, Array], quotients: Array, sizes: Array
) -> tuple[Array, Array]:
    """Return `quotients * scale + bias`, and the sums of the magnitudes of its terms."""
    scale, bias = (
        np.float64(absent) if desc.get(name) is None else inputs[name].astype(np.float64)
        for name, absent in (("ScaleTensor", 1.0), ("BiasTensor", 0.0))
    )
    return quotients * scale + bias, sizes * np.abs(scale) + np.abs(bias)
