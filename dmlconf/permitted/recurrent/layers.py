"""The error scales of recurrent layers, from the equations of one direction.

With FLOAT16, a result near that of the equations, or near that of a kernel which `gru`, `lstm` or
`rnn` lists, is right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, cast

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.numbers.half import STORES
from dmlconf.permitted.numbers.rounding import ANY_RESULT, HALF_STEP
from dmlconf.permitted.numbers.terms import values_repeat
from dmlconf.permitted.recurrent.kernels import EQUATIONS, Kernel, Kernels, Sites
from dmlconf.permitted.recurrent.quantity import quantity_of
from dmlconf.precision.accumulation import roundings
from dmlconf.reference.recurrent.layers import AnyLayerDesc, Direction, layer_outputs
from dmlconf.reference.recurrent.values import Values
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import FLOAT16_EPSILON

__all__ = ["MOST_ERRORS", "MOST_ERRORS_OF_PART", "error_scales", "of_kernels"]

_NEXT_TO_NOTHING: Final = 2.0**-100
"""The error scale of results that are nearly exact, in place of 0."""

MOST_ERRORS: Final = 1 << 18
"""The most elements that `spread.Spread.shared` may have at one step of a group of kernels: 2 MiB.
A single kernel may have more."""

MOST_ERRORS_OF_PART: Final = 1 << 19
"""The most elements that `spread.Spread.shared` may have at one step of a FLOAT32 batch: 4 MiB. A
larger batch is computed in parts."""


def error_scales(
    desc: AnyLayerDesc,
    direction: Direction[AnyLayerDesc],
    kernel_sites: Sequence[Sites],
    biases: int,
) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs that a desc has.

    Args:
        direction: computes one direction of the layer.
        kernel_sites: what each known kernel stores in FLOAT16; unused for FLOAT32.
        biases: how many terms the outputs' rules count besides one for each input and hidden node.
    """
    (*_, batch, inputs), hidden = desc.InputTensor.shape, desc.RecurrenceTensor.shape[-1]
    terms = biases + inputs + hidden
    dtype = desc.InputTensor.dtype
    with np.errstate(all="ignore"):
        if dtype != np.float16:
            equations_alone = Kernels((EQUATIONS,), dtype)
            parts = [
                _error_scales_of(
                    layer_outputs(part, direction, equations_alone), part.outputs, terms
                )
                for part in _parts(desc)
            ]
            repeat = values_repeat(desc.InputTensor, -1) and values_repeat(desc.WeightTensor, -1)
            repeat = repeat or values_repeat(desc.RecurrenceTensor, -1)
            return tuple(
                replace(ErrorScale.joined(each, axis=-2), terms_repeat=repeat)
                for each in zip(*parts, strict=True)
            )
        every = tuple(
            simulation
            for kernels in _groups(kernel_sites, 2 * batch * hidden * hidden, dtype)
            for simulation in _simulations(
                kernels, layer_outputs(desc, direction, kernels), desc.outputs, terms
            )
        )
        wanted = [index for index, desc in enumerate(desc.outputs) if desc is not None]
        return tuple(
            of_kernels([each.values[index] for each in every], scales, terms)
            for index, scales in zip(
                wanted, zip(*(e.scales for e in every), strict=True), strict=True
            )
        )


_BATCHED: Final = ("InputTensor", "HiddenInitTensor", "CellMemInitTensor")
"""Tensors whose last dimension but one is the batch."""


def _parts(desc: AnyLayerDesc) -> Iterator[AnyLayerDesc]:
    """Yield descs of parts of the batch. Their output TensorDescs stay those of the whole batch.

    A part has as many sequences as MOST_ERRORS_OF_PART permits, at least one.
    """
    batch, hidden = desc.InputTensor.shape[-2], desc.RecurrenceTensor.shape[-1]
    size = max(1, MOST_ERRORS_OF_PART // (2 * hidden * hidden))
    if size >= batch:
        yield desc
        return
    for start in range(0, batch, size):
        part = slice(start, start + size)
        tensors = {name: getattr(desc, name, None) for name in _BATCHED}
        fields = {name: each[..., part, :] for name, each in tensors.items() if each is not None}
        if desc.SequenceLengthsTensor is not None:
            fields["SequenceLengthsTensor"] = desc.SequenceLengthsTensor[..., part]
        yield replace(cast(Any, desc), **fields)


def of_kernels(values: Sequence[Array], scales: Sequence[ErrorScale], terms: int) -> ErrorScale:
    """Return the error scale of several kernels, each with errors around its own values.

    Each element has the least error scale of all kernels. If a kernel has the value v, and its
    error is larger by d, it has the span from v - d to v + d. A result is right if its distance
    from one of the spans is within the limit of the error scale. If one kernel may give anything,
    any result is right.

    Derived in docs/bounds.md, Recurrent layers.
    """
    sums = np.stack([scale.sums for scale in scales])
    stored, deviation = (
        np.stack([np.broadcast_to(0.0 if part is None else part, sums[0].shape) for part in parts])
        for parts in (
            [scale.stored for scale in scales],
            [scale.deviation for scale in scales],
        )
    )
    greatest = np.fmax.reduce(np.where(np.isfinite(sums), sums, np.nan), 0)
    least = np.where(greatest >= ANY_RESULT, greatest, sums.min(0))
    # A scale of 0 would mean an exact result, but the last store may round.
    rounded = np.logical_or.reduce([value.astype(np.float16) != value for value in values])
    inexact = (sums.max(0) > 0) | (sums.max(0) == 0) & rounded
    least = np.where(inexact, np.fmax(least, _NEXT_TO_NOTHING), least)
    error = (sums - least) * (HALF_STEP * (roundings(terms) + terms))
    error += (stored - stored.min(0)) * FLOAT16_EPSILON
    error = np.where(np.isfinite(error) & (error > 0), error, 0.0)
    spans = tuple((value - each, value + each) for value, each in zip(values, error, strict=True))
    return ErrorScale(least, stored.min(0), deviation.min(0), spans=spans)


def _groups(kernel_sites: Sequence[Sites], size: int, dtype: np.dtype[Any]) -> Iterator[Kernels]:
    """Yield the kernels in groups: first the equations, then each kernel with each kind of store.

    A group has as many kernels as MOST_ERRORS permits, at least one; `size` is the most elements of
    `Spread.shared` that one kernel needs.
    """
    holding = [Kernel(sites, store) for store in STORES for sites in dict.fromkeys(kernel_sites)]
    kernels = (EQUATIONS, *holding)
    count = max(1, MOST_ERRORS // size)
    for start in range(0, len(kernels), count):
        yield Kernels(kernels[start : start + count], dtype)


@dataclass(frozen=True, slots=True)
class _Simulation:
    """One kernel's results for all outputs.

    Attributes:
        values: the values of all outputs before they are stored, FLOAT64.
        scales: the error scales of those outputs that the desc has.
    """

    values: tuple[Array, ...]
    scales: tuple[ErrorScale, ...]


def _simulations(
    kernels: Kernels, outputs: Sequence[Values], descs: Sequence[TensorDesc | None], terms: int
) -> Iterator[_Simulation]:
    scales = _error_scales_of(outputs, descs, terms)
    values = [quantity.value for quantity in outputs]
    for block in kernels.blocks(values[0].shape[-2]):
        yield _Simulation(
            tuple(each[..., block, :] for each in values),
            tuple(scale[..., block, :] for scale in scales),
        )


def _error_scales_of(
    outputs: Sequence[Values], descs: Sequence[TensorDesc | None], terms: int
) -> tuple[ErrorScale, ...]:
    return tuple(
        quantity_of(output).narrowed(terms)
        for output, desc in zip(outputs, descs, strict=True)
        if desc is not None
    )
