"""Make descs for the search to start from, with sizes that changing one parameter never gives.

Another axis of TOP_K, for example, needs outputs of other sizes.
The search leaves out descs that the catalogue refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any, Final

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import Operator

__all__ = ["starts"]

_Sizes = tuple[int, ...]
_Sized = tuple[Mapping[str, _Sizes], Mapping[str, Any]]
"""Sizes of tensors by name, and values of other fields and of arrays of tensors."""

_LEADING: Final = (2, 3, 2, 1, 1, 1, 1)

_LASTS: Final = (5, 1, 7, 15, 16, 17, 1031)
"""Last sizes of each class of the parameter `last size`."""

_MOST_ELEMENTS: Final = 20_000
"""The largest product of channels and last size."""

_FEW_ELEMENTS: Final = 5_000
"""The largest product of channels and last size for images with two rows."""

_MOST_PRODUCTS: Final = 60_000
"""The most multiplications in a batch."""


def starts(operator: Operator, desc: Desc) -> Iterator[Desc]:
    """Yield descs with other sizes and no strides; some may be invalid."""
    make = _STARTS.get(operator.name)
    if make is None:
        return
    fields = {each.name for each in operator.fields}
    for sizes, named in make():
        others = {name: value for name, value in named.items() if name in fields}
        changed: dict[str, Any] = {**desc, **others}
        for name, shape in sizes.items():
            tensor = _first_tensor(desc.get(name))
            if tensor is not None:
                changed[name] = replace(tensor, Sizes=shape, Strides=None)
        for name, shapes in others.items():
            tensor = _first_tensor(desc.get(name))
            if tensor is not None:
                changed[name] = tuple(
                    replace(tensor, Sizes=shape, Strides=None) for shape in shapes
                )
        yield changed


def _first_tensor(value: Any) -> TensorDesc | None:
    value = value[0] if isinstance(value, tuple) and value else value
    return value if isinstance(value, TensorDesc) else None


def _shapes(most: int = 8, least: int = 1) -> Iterator[_Sizes]:
    for rank, last in product(range(least, most + 1), _LASTS):
        yield (*_LEADING[: rank - 1], last)


def _with_size(shape: _Sizes, at: int, size: int) -> _Sizes:
    return (*shape[:at], size, *shape[at + 1 :])


def _axes(shape: _Sizes) -> list[int]:
    return sorted({0, len(shape) // 2, len(shape) - 1})


def _top_k() -> Iterator[_Sized]:
    for shape in _shapes():
        for axis in _axes(shape):
            for count in {shape[axis], 1}:
                output = _with_size(shape, axis, count)
                sizes = {
                    "InputTensor": shape,
                    "OutputValueTensor": output,
                    "OutputIndexTensor": output,
                }
                yield sizes, {"Axis": axis, "K": count}


def _split() -> Iterator[_Sized]:
    for shape in _shapes():
        for axis in _axes(shape):
            for parts in ((shape[axis],), (shape[axis], 3), (3, shape[axis])):
                outputs = tuple(_with_size(shape, axis, part) for part in parts)
                others = {"Axis": axis, "OutputCount": len(parts), "OutputTensors": outputs}
                yield {"InputTensor": _with_size(shape, axis, sum(parts))}, others


def _join() -> Iterator[_Sized]:
    for shape in _shapes():
        for axis in _axes(shape):
            whole = shape[axis]
            for parts in ((whole,), (2, whole - 2), (whole - 1, 1)):
                if min(parts) > 0:
                    inputs = tuple(_with_size(shape, axis, part) for part in parts)
                    others = {"Axis": axis, "InputCount": len(parts), "InputTensors": inputs}
                    yield {"OutputTensor": shape}, others


def _gather_elements() -> Iterator[_Sized]:
    for shape in _shapes():
        for axis in _axes(shape):
            for count in {shape[axis], 3}:
                indices = _with_size(shape, axis, count)
                sizes = {"InputTensor": shape, "IndicesTensor": indices, "OutputTensor": indices}
                yield sizes, {"Axis": axis}


def _scatter_elements() -> Iterator[_Sized]:
    for shape in _shapes():
        for axis in _axes(shape):
            indices = _with_size(shape, axis, min(2, shape[axis]))
            sizes = dict.fromkeys(("InputTensor", "OutputTensor"), shape)
            sizes |= dict.fromkeys(("IndicesTensor", "UpdatesTensor"), indices)
            yield sizes, {"Axis": axis}


def _tuples() -> Iterator[_Sized]:
    for rank, last in product(range(1, 9), _LASTS):
        for lead in ((3, *(1,) * (rank - 4), 2)[: max(0, rank - 2)], (2, 3), (3,), (2, 1, 3), ()):
            for source in ((4, 3, last), (4, last), (last,)):
                for chosen in range(1, len(source) + 1):
                    indices = (*lead, chosen)
                    output = (*lead, *source[chosen:])
                    if max(len(indices), len(source), len(output)) <= rank:
                        sizes = {
                            "InputTensor": source,
                            "IndicesTensor": indices,
                            "OutputTensor": output,
                        }
                        counts = {
                            "InputDimensionCount": len(source),
                            "IndicesDimensionCount": len(indices),
                            "BatchDimensionCount": 0,
                        }
                        yield {k: _with_leading_ones(v, rank) for k, v in sizes.items()}, counts


def _with_leading_ones(shape: _Sizes, rank: int) -> _Sizes:
    return (*(1,) * (rank - len(shape)), *shape)


def _gather() -> Iterator[_Sized]:
    for rank, last in product(range(1, 9), _LASTS):
        flat = (3, *(1,) * max(0, rank - 3), 2)
        for indices in (flat, (3, 2), (3, 1, 2), (2, 3, 2), (2, 3, 1, 2), (3,)):
            for source, axis in (((5, last), -2), ((5,), -1), ((last,), -1), ((3, 5, last), -2)):
                output = (*source[:axis], *indices, *(source[axis + 1 :] if axis < -1 else ()))
                if max(len(indices), len(source), len(output)) <= rank:
                    sizes = {
                        "InputTensor": source,
                        "IndicesTensor": indices,
                        "OutputTensor": output,
                    }
                    others = {"Axis": rank + axis, "IndexDimensions": len(indices)}
                    yield {k: _with_leading_ones(v, rank) for k, v in sizes.items()}, others


def _tile() -> Iterator[_Sized]:
    for shape in _shapes():
        for repeats in ((2,), (1,) * (len(shape) - 1) + (2,), (1,) * len(shape)):
            padded = (*repeats, *(1,) * (len(shape) - len(repeats)))[: len(shape)]
            output = tuple(size * repeat for size, repeat in zip(shape, padded, strict=True))
            others = {"RepeatsCount": len(shape), "Repeats": padded}
            yield {"InputTensor": shape, "OutputTensor": output}, others


def _reverse() -> Iterator[_Sized]:
    for shape in _shapes():
        for axis in _axes(shape):
            sizes = dict.fromkeys(("InputTensor", "OutputTensor"), shape)
            yield {**sizes, "SequenceLengthsTensor": _with_size(shape, axis, 1)}, {"Axis": axis}


def _one_hot() -> Iterator[_Sized]:
    for shape in _shapes():
        for axis in _axes(shape):
            yield (
                {"OutputTensor": shape, "IndicesTensor": _with_size(shape, axis, 1)},
                {"Axis": axis},
            )


def _reduced() -> Iterator[_Sized]:
    for shape in _shapes():
        rank = len(shape)
        choices = {(rank - 1,), (0,), (1,), (0, 1), (rank - 2, rank - 1), (0, rank - 1), ()}
        for axes in sorted({each for each in choices if all(0 <= at < rank for at in each)}):
            for size in (None, 1, 7, 15, 16, 17, 1031):
                source = shape
                if size is not None and axes:
                    source = tuple(1 if at in axes else n for at, n in enumerate(shape))
                    source = _with_size(source, axes[0], size)
                output = tuple(1 if at in axes else n for at, n in enumerate(source))
                others = {"Axes": axes, "AxisCount": len(axes)}
                yield {"InputTensor": source, "OutputTensor": output}, others


def _regions() -> Iterator[_Sized]:
    nearest = {"InterpolationMode": "NEAREST_NEIGHBOR"}
    for others, last, regions, rank, channels in product(
        ({}, nearest), _LASTS, (4, 3, 1), (2, 3, 4), (3, 1)
    ):
        for width in {5, last}:
            whole, part = (2, channels, 4, width), (regions, channels, 2, last)
            batch = _with_leading_ones((regions,), min(rank, 4))
            rois = _with_leading_ones((regions, 4), rank)
            yield (
                {
                    "InputTensor": whole,
                    "OutputGradientTensor": whole,
                    "OutputTensor": part,
                    "InputGradientTensor": part,
                    "ROITensor": rois,
                    "OutputROIGradientTensor": rois,
                    "BatchIndicesTensor": batch,
                },
                others,
            )


def _roi_pooling() -> Iterator[_Sized]:
    for last, regions in product(_LASTS, (4, 2)):
        for width in {5, last}:
            sizes = {
                "InputTensor": (2, 3, 4, width),
                "ROITensor": (1, 1, regions, 5),
                "OutputTensor": (regions, 3, 2, last),
            }
            yield sizes, {"PooledSize": {"Width": last, "Height": 2}}


def _unfolded(whole: str, columns: str) -> Callable[[], Iterator[_Sized]]:
    """Return a function that yields sizes of UNFOLD or FOLD, whose tensors have these names."""

    def make() -> Iterator[_Sized]:
        for shape, batches, channels in product(_shapes(8, 3), (2, 1), (3, 1)):
            inner = shape[2:]
            full = (batches, channels, *inner)
            count = len(inner)
            for window in ((2, *(1,) * (count - 1)), (*(1,) * (count - 1), 2), (1,) * count):
                blocks = 1
                for size, part in zip(inner, window, strict=True):
                    blocks *= max(1, size - part + 1)
                factor = 2 if 2 in window else 1
                yield (
                    {whole: full, columns: (batches, channels * factor, blocks)},
                    {
                        "DimensionCount": count,
                        "WindowSizes": window,
                        "Strides": (1,) * count,
                        "Dilations": (1,) * count,
                        "StartPadding": (0,) * count,
                        "EndPadding": (0,) * count,
                    },
                )

    return make


def _nonzero() -> Iterator[_Sized]:
    rows = [(*(1,) * (rank - 1), last) for rank, last in product(range(2, 9), _LASTS)]
    for shape in (*_shapes(), *rows):
        for rank, columns in product((2, 3, 4), range(1, len(shape) + 1)):
            elements = 1
            for size in shape:
                elements *= size
            yield (
                {
                    "InputTensor": shape,
                    "OutputCountTensor": (1,) * len(shape),
                    "OutputCoordinatesTensor": _with_leading_ones((elements, columns), rank),
                },
                {},
            )


def _channels(*names: str, most: int = 4, least: int = 4) -> Callable[[], Iterator[_Sized]]:
    """Return a function that yields equal sizes for these tensors, with various channels."""

    def make() -> Iterator[_Sized]:
        for rank, last, channels, batch in product(range(least, most + 1), _LASTS, _LASTS, (2, 1)):
            if rank < 2 or channels * last < _MOST_ELEMENTS:
                height = 2 if channels * last < _FEW_ELEMENTS else 1
                spatial = (*(height,) * min(1, max(0, rank - 3)), *(1,) * max(0, rank - 4), last)
                shape = (batch, channels, *spatial)[:rank] if rank > 1 else (last,)
                if rank == 2:
                    shape = (batch, last)
                yield dict.fromkeys(names, shape), {}

    return make


def _resampled() -> Iterator[_Sized]:
    for rank, last, channels in product(range(1, 5), _LASTS, (3, 1, 7, 15, 16, 17, 1031)):
        for scales in ((1, 1), (2, 2), (1.5, 1.5), (0.5, 0.5), (2, 0.5), (1, 2)):
            scale = (1,) * max(0, rank - 2) + scales[-min(rank, 2) :]
            shape = ((2, channels, 2)[: rank - 1] if rank > 2 else (channels,)[: rank - 1], last)
            target = (*shape[0], shape[1])
            source = tuple(
                max(1, round(size / each)) for size, each in zip(target, scale, strict=True)
            )
            yield (
                {
                    "InputTensor": source,
                    "OutputTensor": target,
                    "OutputGradientTensor": source,
                    "InputGradientTensor": target,
                },
                {
                    "ScaleCount": rank,
                    "Scales": scale,
                    "DimensionCount": rank,
                    "InputPixelOffsets": (0.5,) * rank,
                    "OutputPixelOffsets": (-0.5,) * rank,
                },
            )


def _upsampled() -> Iterator[_Sized]:
    for rank, last in product((4, 5), _LASTS):
        for high, wide in ((2, 1), (1, 1), (2, 2), (3, 1)):
            if last % wide == 0:
                lead = (2, 3, 2)[: rank - 2]
                sizes = {
                    "InputTensor": (*lead, 2, last // wide),
                    "OutputTensor": (*lead, 2 * high, last),
                }
                yield sizes, {"ScaleSize": {"Width": wide, "Height": high}}


def _unpooled() -> Iterator[_Sized]:
    for last, height in product(_LASTS, (2, 1, 4)):
        small = (2, 3, height, last)
        sizes = dict.fromkeys(("InputTensor", "IndicesTensor"), small)
        for target in ((2, 3, 2 * height, last), (2, 3, height, last), (2, 3, height, 2 * last)):
            yield {**sizes, "OutputTensor": target}, {}


def _matrices() -> Iterator[_Sized]:
    """Yield sizes of products of integers; scales are for a tensor, or for each row or column."""
    for rank, rows, inner, last in product((4, 3, 2), _LASTS, _LASTS, _LASTS):
        if sorted((rows, inner, last))[1] > 7 or rows * inner * last > _MOST_PRODUCTS:
            continue
        lead = (2, 3)[: rank - 2]
        for each in (True, False):
            row = (1,) * (rank - 2) + ((rows, 1) if each else (1, 1))
            column = (1,) * (rank - 1) + ((last,) if each else (1,))
            yield (
                {
                    "ATensor": (*lead, rows, inner),
                    "BTensor": (*lead, inner, last),
                    "OutputTensor": (*lead, rows, last),
                    "BiasTensor": (*lead, rows, last),
                    "AScaleTensor": row,
                    "AZeroPointTensor": row,
                    "OutputScaleTensor": row,
                    "OutputZeroPointTensor": row,
                    "BScaleTensor": column,
                    "BZeroPointTensor": column,
                },
                {},
            )


def _gemm() -> Iterator[_Sized]:
    for rows, inner, last, lead in product(
        _LASTS, _LASTS, _LASTS, ((2, 3), (1, 3), (1, 1), (3,), (1,), ())
    ):
        if sorted((rows, inner, last))[1] > 17 or rows * inner * last > _MOST_PRODUCTS:
            continue
        for one, two in product(("NONE", "TRANSPOSE"), repeat=2):
            yield (
                {
                    "ATensor": (*lead, *((rows, inner) if one == "NONE" else (inner, rows))),
                    "BTensor": (*lead, *((inner, last) if two == "NONE" else (last, inner))),
                    "CTensor": (*lead, rows, last),
                    "OutputTensor": (*lead, rows, last),
                },
                {"TransA": one, "TransB": two},
            )


_SINGLE: Final = (
    *("InputScaleTensor", "FilterScaleTensor", "OutputScaleTensor"),
    *("InputZeroPointTensor", "FilterZeroPointTensor", "OutputZeroPointTensor"),
)


def _convolved() -> Iterator[_Sized]:
    for last, inputs, outputs, groups in product(
        _LASTS, _LASTS, (3, 6, 128, *_LASTS), (1, 3, 5, 7, 11, 17, 31, 64)
    ):
        if inputs * outputs * last > _MOST_PRODUCTS * groups or inputs % groups or outputs % groups:
            continue
        for window, batches in product((3, 1, 2), (2, 1)):
            yield (
                {
                    "InputTensor": (batches, inputs, last + window - 1),
                    "FilterTensor": (outputs, inputs // groups, window),
                    "OutputTensor": (batches, outputs, last),
                    "BiasTensor": (1, outputs, 1),
                    **dict.fromkeys(_SINGLE, (1, 1, 1)),
                },
                {
                    "DimensionCount": 2,
                    "Strides": (1, 1),
                    "Dilations": (1, 1),
                    "StartPadding": (0, 0),
                    "EndPadding": (0, 0),
                    "GroupCount": groups,
                },
            )


def _softmax() -> Iterator[_Sized]:
    for rank, last, rows in product(range(2, 9), _LASTS, (3, 1)):
        shape = (*(1,) * (rank - 2), rows, last)
        yield dict.fromkeys(("InputTensor", "OutputTensor"), shape), {}


def _equal_along_axes() -> Iterator[_Sized]:
    for shape in _shapes():
        sizes = dict.fromkeys(("InputTensor", "OutputTensor"), shape)
        for axis in _axes(shape):
            yield sizes, {"Axis": axis}


def _batch_normalization() -> Iterator[_Sized]:
    whole = (
        *("InputTensor", "OutputTensor", "InputGradientTensor", "OutputGradientTensor"),
        "FusedAddTensor",
    )
    parts = (
        *("MeanTensor", "VarianceTensor", "ScaleTensor", "BiasTensor", "OutputMeanTensor"),
        *("OutputVarianceTensor", "OutputScaleGradientTensor", "OutputBiasGradientTensor"),
    )
    for sizes, others in _channels("-", most=8, least=1)():
        [shape] = sizes.values()
        per_channel = tuple(n if at == 1 else 1 for at, n in enumerate(shape))
        for part in (per_channel, shape):
            yield {**dict.fromkeys(whole, shape), **dict.fromkeys(parts, part)}, others


_STARTS: Final[Mapping[str, Callable[[], Iterator[_Sized]]]] = {
    "ACTIVATION_HARDMAX": _softmax,
    "ACTIVATION_LOG_SOFTMAX": _softmax,
    "ACTIVATION_SOFTMAX": _softmax,
    "ARGMAX": _reduced,
    "ARGMIN": _reduced,
    "BATCH_NORMALIZATION": _batch_normalization,
    "BATCH_NORMALIZATION_GRAD": _batch_normalization,
    "BATCH_NORMALIZATION_TRAINING": _batch_normalization,
    "BATCH_NORMALIZATION_TRAINING_GRAD": _batch_normalization,
    "CONVOLUTION_INTEGER": _convolved,
    "FOLD": _unfolded("OutputTensor", "InputTensor"),
    "GATHER": _gather,
    "GATHER_ELEMENTS": _gather_elements,
    "GATHER_ND": _tuples,
    "GATHER_ND1": _tuples,
    "GEMM": _gemm,
    "JOIN": _join,
    "LOCAL_RESPONSE_NORMALIZATION": _channels("InputTensor", "OutputTensor"),
    "LOCAL_RESPONSE_NORMALIZATION_GRAD": _channels(
        "InputTensor", "InputGradientTensor", "OutputGradientTensor"
    ),
    "LP_NORMALIZATION": _equal_along_axes,
    "MATRIX_MULTIPLY_INTEGER": _matrices,
    "MATRIX_MULTIPLY_INTEGER_TO_FLOAT": _matrices,
    "MAX_UNPOOLING": _unpooled,
    "NONZERO_COORDINATES": _nonzero,
    "ONE_HOT": _one_hot,
    "QUANTIZED_LINEAR_MATRIX_MULTIPLY": _matrices,
    "QUANTIZED_LINEAR_CONVOLUTION": _convolved,
    "REDUCE": _reduced,
    "RESAMPLE": _resampled,
    "RESAMPLE1": _resampled,
    "RESAMPLE2": _resampled,
    "RESAMPLE3": _resampled,
    "RESAMPLE_GRAD": _resampled,
    "RESAMPLE_GRAD1": _resampled,
    "REVERSE_SUBSEQUENCES": _reverse,
    "ROI_ALIGN": _regions,
    "ROI_ALIGN1": _regions,
    "ROI_ALIGN_GRAD": _regions,
    "ROI_POOLING": _roi_pooling,
    "SCATTER_ELEMENTS": _scatter_elements,
    "SPLIT": _split,
    "TILE": _tile,
    "TOP_K": _top_k,
    "TOP_K1": _top_k,
    "UNFOLD": _unfolded("InputTensor", "OutputTensor"),
    "UPSAMPLE_2D": _upsampled,
}
