"""What kernels of recurrent layers hold in FLOAT16 between two steps.

DirectML computes a step of LSTM, GRU and RNN by several operators, and FLOAT16 holds what some of
them give. Which ones differs by operator and version. Each version is known well enough to simulate
it: all but a few elements of a thousand come out to the bit. So a result is right if it is near
that of the equations, or near that of one of these kernels. How near follows from the simulation
too: a store forgets the errors before it, unless they reach across a boundary.

Derived in docs/bounds.md, Recurrent layers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.error_scale import ErrorScale
from dmlconf.reference.numbers.half import STORES, Store, to_nearest
from dmlconf.reference.numbers.quantity import Quantity
from dmlconf.reference.recurrent.sequences import error_scales_of, in_data_types
from dmlconf.tensors.datatypes import Array

__all__ = ["EXACT", "Kernel", "Kernels", "Sites", "error_scales"]

Sites = frozenset[str]
"""Names of values in a layer's equations."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """How a layer is computed.

    Attributes:
        sites: the values that FLOAT16 holds; of FLOAT32 tensors none.
        rounded: gives the FLOAT16 numbers that are stored, FLOAT64.
    """

    sites: Sites
    rounded: Store


@dataclass(frozen=True, slots=True)
class Kernels:
    """Kernels that compute a layer side by side, each in its own rows, one behind the other.

    Tensors of recurrent layers are small, so all kernels take hardly longer than one.

    Attributes:
        each: the kernels; one at least.
    """

    each: tuple[Kernel, ...]

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self.each)

    def held(self, quantity: Quantity, site: str, exact: Array | bool = False) -> Quantity:
        """Return a value as the next operation reads it.

        Args:
            quantity: the value, sizes {..., rows, n}.
            site: its name.
            exact: where every order of computing makes exactly these values.
        """
        holding = [site in kernel.sites for kernel in self.each]
        if not any(holding):
            return quantity
        rows = np.repeat(holding, quantity.value.shape[-2] // self.count)[:, np.newaxis]
        return quantity.held(self.rounded, exact, True if all(holding) else rows)

    def rounded(self, values: Array) -> Array:
        """Return what each kernel stores of its rows {..., rows, n}."""
        stored = np.empty_like(values)
        for kernel, block in zip(self.each, self.blocks(values.shape[-2]), strict=True):
            stored[..., block, :] = kernel.rounded(values[..., block, :])
        return stored

    def blocks(self, rows: int) -> list[slice]:
        """Return which of so many rows are those of each kernel."""
        size = rows // self.count
        return [slice(start, start + size) for start in range(0, rows, size)]

    def with_bias(
        self, sums: Quantity, bias: Array, exact: Array | bool = False, site: str = "sum with bias"
    ) -> Quantity:
        """Return sums with a bias, which is held as `bias`, as is the result by its own name.

        Args:
            sums: sizes {..., rows, n}.
            bias: n numbers.
            exact: where every order of adding up makes the same sums.
            site: the name of the result.
        """
        value = np.broadcast_to(bias, sums.value.shape)
        constant = Quantity.constant(value, sums.error_scale is not None)
        return self.held(sums + self.held(constant, "bias", exact=True), site, exact)


EXACT: Final = Kernels((Kernel(frozenset(), to_nearest),))
"""Computes all in FLOAT32, and stores no more than the outputs."""

_MOST_ERRORS: Final = 1 << 18
"""Numbers of shared errors in a step that are carried at once, so that they stay in the cache."""


def _groups(variants: Sequence[Sites], size: int) -> Iterator[Kernels]:
    """Yield that of the equations, and those that hold one of these sets of values.

    Args:
        variants: the sets.
        size: how many numbers the shared errors of a step are, of one kernel; as many kernels are
            computed at once as is fast.
    """
    holding = [Kernel(sites, store) for store in STORES for sites in dict.fromkeys(variants)]
    kernels = (*EXACT.each, *holding)
    count = max(1, _MOST_ERRORS // size)
    for start in range(0, len(kernels), count):
        yield Kernels(kernels[start : start + count])


def error_scales(
    layer: Callable[[Kernels], tuple[Quantity, ...]],
    tensor: Array,
    recurrence: Array,
    variants: Sequence[Sites],
    descs: Sequence[TensorDesc | None],
    biases: int,
) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs that a desc has.

    Args:
        layer: computes the outputs as kernels do, sizes {..., rows, n}, with their errors.
        tensor: the input, sizes {1, T, N, I}.
        recurrence: sizes {1, R, gates * H, H}.
        variants: what kernels of FLOAT16 hold.
        descs: of the outputs.
        biases: how many terms the outputs' rules count beside those of the two products.
    """
    (*_, batch, inputs), hidden = tensor.shape, recurrence.shape[-1]
    terms = biases + inputs + hidden
    with np.errstate(all="ignore"):
        if tensor.dtype != np.float16:
            return error_scales_of(layer(EXACT), descs, terms)
        equations, *simulations = (
            simulation
            for kernels in _groups(variants, 2 * batch * hidden * hidden)
            for simulation in _simulations(kernels, layer(kernels), descs, terms)
        )
        others = [other for each in simulations for other in each.beside(equations, descs)]
        scales = zip(*(each.scales for each in (equations, *simulations)), strict=True)
        return tuple(
            replace(reduce(_greater, each), others=tuple(values[index] for values in others))
            for index, each in enumerate(scales)
        )


@dataclass(frozen=True, slots=True)
class _Simulation:
    """What one kernel makes of all outputs.

    Attributes:
        values: before they are stored, FLOAT64.
        stored: as FLOAT16 numbers, FLOAT64.
        scales: the error scales of those that the desc has.
    """

    values: tuple[Array, ...]
    stored: tuple[Array, ...]
    scales: tuple[ErrorScale, ...]

    def beside(
        self, equations: _Simulation, descs: Sequence[TensorDesc | None]
    ) -> Iterator[tuple[Array, ...]]:
        """Yield outputs that are right beside those of the equations.

        A kernel that holds only some of these values gives what lies between.
        """
        yield in_data_types(self.stored, descs)
        both = zip(self.stored, equations.values, strict=True)
        yield in_data_types([(stored + right) / 2 for stored, right in both], descs)


def _simulations(
    kernels: Kernels, outputs: Sequence[Quantity], descs: Sequence[TensorDesc | None], terms: int
) -> Iterator[_Simulation]:
    """Yield what each kernel makes of all outputs.

    Args:
        kernels: the kernels.
        outputs: what they compute.
        descs, terms: as `error_scales` takes them.
    """
    scales = error_scales_of(outputs, descs, terms)
    values = [quantity.value for quantity in outputs]
    stored = [kernels.rounded(each) for each in values]
    for block in kernels.blocks(values[0].shape[-2]):
        yield _Simulation(
            tuple(each[..., block, :] for each in values),
            tuple(each[..., block, :] for each in stored),
            tuple(scale[..., block, :] for scale in scales),
        )


def _greater(first: ErrorScale, second: ErrorScale) -> ErrorScale:
    """Return the greater of the sizes of two error scales."""
    stored, deviation = (
        np.maximum(*(np.zeros(()) if size is None else size for size in sizes))
        for sizes in (
            (first.stored, second.stored),
            (first.deviation, second.deviation),
        )
    )
    return ErrorScale(np.fmax(first.sums, second.sums), stored, deviation)
