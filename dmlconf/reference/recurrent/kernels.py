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
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.numbers.error_scale import ErrorScale
from dmlconf.reference.numbers.half import STORES, Store, to_nearest
from dmlconf.reference.numbers.quantity import Quantity
from dmlconf.reference.recurrent.sequences import error_scales_of, values_of
from dmlconf.tensors.datatypes import Array

__all__ = ["EXACT", "Kernel", "Sites", "error_scales"]

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

    def held(self, quantity: Quantity, site: str, exact: Array | bool = False) -> Quantity:
        """Return a value as the next operation reads it.

        Args:
            quantity: the value.
            site: its name.
            exact: where every order of computing makes exactly these values.
        """
        return quantity.held(self.rounded, exact) if site in self.sites else quantity

    def with_bias(
        self, sums: Quantity, bias: Array, exact: Array | bool = False, site: str = "sum with bias"
    ) -> Quantity:
        """Return sums with a bias, which is held as `bias`, as is the result by its own name.

        Args:
            sums: sizes {..., n}.
            bias: n numbers.
            exact: where every order of adding up makes the same sums.
            site: the name of the result.
        """
        value = np.broadcast_to(bias, sums.value.shape)
        constant = Quantity.constant(value, sums.error_scale is not None)
        return self.held(sums + self.held(constant, "bias", exact=True), site, exact)


EXACT: Final = Kernel(frozenset(), to_nearest)
"""Computes all in FLOAT32, and stores no more than the outputs."""


def _kernels(variants: Sequence[Sites]) -> Iterator[Kernel]:
    """Yield the kernels that hold one of these sets of values, toward zero or to nearest."""
    for sites in dict.fromkeys(variants):
        for store in STORES:
            yield Kernel(sites, store)


def error_scales(
    layer: Callable[[Kernel], tuple[Quantity, ...]],
    dtype: np.dtype[Any],
    variants: Sequence[Sites],
    descs: Sequence[TensorDesc | None],
    terms: int,
) -> tuple[ErrorScale, ...]:
    """Return the error scales of the outputs that a desc has.

    Args:
        layer: computes the outputs as a kernel does, with their errors.
        dtype: the type of the tensors.
        variants: what kernels of FLOAT16 hold.
        descs: of the outputs.
        terms: how many terms the outputs' rules count.
    """
    with np.errstate(all="ignore"):
        equations = layer(EXACT)
        exact = error_scales_of(equations, descs, terms)
        if dtype != np.float16:
            return exact
        simulations = []
        for kernel in _kernels(variants):
            outputs = layer(kernel)
            scales = error_scales_of(outputs, descs, terms)
            stored = tuple(replace(q, value=kernel.rounded(q.value)) for q in outputs)
            # A kernel that holds only some of these values gives what lies between.
            between = tuple(
                replace(q, value=(q.value + right.value) / 2)
                for q, right in zip(stored, equations, strict=True)
            )
            others = (values_of(stored, descs), values_of(between, descs))
            simulations.append((scales, others))
        return tuple(
            replace(
                reduce(_greater, (scales[index] for scales, _ in simulations), own),
                others=tuple(values[index] for _, others in simulations for values in others),
            )
            for index, own in enumerate(exact)
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
