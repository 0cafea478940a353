"""Permitted errors of GEMM, `Alpha * A * B + Beta * C`, with a fused activation or softmax."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dmlconf.permitted.activation.fused import fused_error_scale, limiting_products
from dmlconf.permitted.activation.softmax import fused_softmax_error_scale
from dmlconf.permitted.numbers.error_scale import ErrorScale, quantum_of, store_sizes
from dmlconf.permitted.numbers.rounding import (
    STEP,
    finite_or_zero,
    finite_sizes,
    overflows,
    sizes_of,
)
from dmlconf.permitted.numbers.terms import values_repeat
from dmlconf.reference.fields import of_fields
from dmlconf.reference.numbers.floats import single, wide
from dmlconf.reference.products.gemm import GemmDesc, fused_softmax_axes, gemm_sums
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import LARGEST_FLOAT16, LEAST_NORMAL_FLOAT32

__all__ = [
    "gemm_error_scale",
]


@of_fields(GemmDesc)
def gemm_error_scale(desc: GemmDesc) -> ErrorScale:
    """Return the error scale: the sums of absolute values, carried through the fused operator.

    Measured: FLOAT16 may hold the sum of products before C is added, and the activation's input.

    Derived in docs/bounds.md, Sums.
    """
    alpha, beta = single(desc.Alpha), single(desc.Beta)
    c = None if desc.CTensor is None else wide(desc.CTensor)
    absolute_c = None if c is None else np.abs(c)
    with np.errstate(all="ignore"):
        error_scale = gemm_sums(desc, absolute_c, abs(alpha), abs(beta), sizes_of)
        beyond = np.zeros(error_scale.shape, bool)
        of_finite = None
        if abs(alpha) < 1:
            beyond |= overflows(gemm_sums(desc, None, 1.0, 0.0, sizes_of))
        if not np.isfinite(error_scale).all():
            # If a term is infinite, finite ones may overflow to the opposite infinity.
            added = desc.CTensor if np.isfinite(beta) else None
            finite_c = None if added is None else finite_sizes(added)
            factor = max(1.0, abs(alpha)) if np.isfinite(alpha) else 1.0
            finite = gemm_sums(desc, finite_c, factor, abs(beta), finite_sizes)
            beyond |= overflows(finite) & ~np.isnan(error_scale)
            if np.isfinite([alpha, beta]).all():
                finite_c = None if added is None else finite_or_zero(added)
                factor = np.copysign(factor, alpha)
                of_finite = gemm_sums(desc, finite_c, factor, beta, finite_or_zero), finite
        in_doubt = _zero_in_doubt(desc) if np.isinf(alpha) else np.zeros((), bool)
        quantum = quantum_of(alpha, desc.ATensor, desc.BTensor)
        if desc.CTensor is not None:
            quantum = min(quantum, quantum_of(beta, desc.CTensor))
        sizes = ErrorScale(error_scale, quantum=quantum).overflowing_where(beyond)
        if in_doubt.any():
            sizes = sizes.open_where(in_doubt)
        underflow = _underflow_error(desc) * abs(alpha)
        if 1 < abs(alpha) < np.inf and underflow.any():
            sizes = replace(sizes, sums=sizes.sums + underflow / STEP, quantum=0.0)
        repeat = values_repeat(desc.ATensor, -2 if desc.TransA == "TRANSPOSE" else -1)
        repeat = repeat and values_repeat(desc.BTensor, -1 if desc.TransB == "TRANSPOSE" else -2)
        if abs(alpha) > 1 and overflows(error_scale).any():
            sizes = sizes.growing(np.asarray(abs(alpha)), gemm_sums(desc, c, alpha, beta))
        dtype, activation = desc.ATensor.dtype, desc.FusedActivation
        axes = None if activation is None else fused_softmax_axes(activation)
        products = None
        if dtype == np.float16:
            products = gemm_sums(desc, None, alpha, beta)
            squares = gemm_sums(desc, None, alpha**2, 0.0, _squares)
            terms = desc.ATensor.shape[-2 if desc.TransA == "TRANSPOSE" else -1]
            beside = 0.0 if absolute_c is None else abs(beta) * absolute_c
            sizes = sizes.in_slices(products, squares, terms, added=beside)
            if c is not None:
                sizes = sizes.holding(store_sizes(products, sizes.exact))
                # A sum of products that overflows makes a whole row of a fused SOFTMAX NaN.
                beyond |= np.isfinite(products) & (np.abs(products) > LARGEST_FLOAT16)
        sums = gemm_sums(desc, c, alpha, beta)
        greatest = error_scale if of_finite is None else of_finite[1]
        if axes is None and (beyond.any() or overflows(greatest, dtype).any()):
            if abs(alpha) < LEAST_NORMAL_FLOAT32:
                multiplied = np.inf  # An infinite sum times an Alpha of 0 is NaN.
            else:
                multiplied = 1.0 if of_finite else max(1.0, 1 / abs(alpha))
            sizes = sizes.signed(sums, multiplied, of_finite)
        if axes is not None:
            scale = fused_softmax_error_scale(sums, sizes, axes)
            # FLOAT16 may hold the sums, as its largest numbers or as infinities.
            beyond |= np.isfinite(sums) & (np.abs(sums) > float(np.finfo(dtype).max))
            beyond |= overflows(sizes.sums)
            return scale.open_where(np.asarray(beyond.any(tuple(set(axes)), keepdims=True)))
        scale = fused_error_scale(sums, sizes, activation, dtype, only_sums=True)
        if products is not None and c is not None:
            scale = limiting_products(scale, products, beta * c, activation, dtype)
        return replace(scale, terms_repeat=repeat)


def _zero_in_doubt(desc: GemmDesc) -> Array:
    """Return which sums of products may be 0, or of either sign, in FLOAT32.

    An infinite Alpha times 0 is NaN. Products below FLOAT32, such as 1.2e-38 * 1.2e-38, are 0 on
    DirectML. Sums of zeros alone are not in doubt.
    """
    sums, sizes = gemm_sums(desc, None, 1.0, 0.0), gemm_sums(desc, None, 1.0, 0.0, sizes_of)
    terms = desc.ATensor.shape[-2 if desc.TransA == "TRANSPOSE" else -1]
    reach = terms * (STEP * sizes + LEAST_NORMAL_FLOAT32)
    in_doubt: Array = (sizes > 0) & np.isfinite(sizes) & (np.abs(sums) <= reach)
    return in_doubt


def _underflow_error(desc: GemmDesc) -> Array:
    """Return how far sums may be off, before Alpha, because products of A and B are subnormal.

    A subnormal product has few digits or is taken for zero: 1e-45 * 0.8 is 1e-45 or 0.
    """
    sizes = sizes_of(desc.ATensor), sizes_of(desc.BTensor)
    least = [np.min(size[size > 0], initial=np.inf) for size in sizes]
    if not 0 < least[0] * least[1] < LEAST_NORMAL_FLOAT32:
        return np.zeros(())
    terms = desc.ATensor.shape[-2 if desc.TransA == "TRANSPOSE" else -1]
    sums = gemm_sums(desc, None, 1.0, 0.0, finite_sizes)
    error: Array = np.minimum(sums, terms * LEAST_NORMAL_FLOAT32)
    return error


def _squares(tensor: Array) -> Array:
    return np.square(tensor, dtype=np.float64)
