"""Permitted errors of MULTIHEAD_ATTENTION and MULTIHEAD_ATTENTION1.

A score is the scaled product of a query and a key, plus a bias of their positions and a mask. The
shares of a softmax over the scores weight the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.activation.softmax import change_of_shares
from dmlconf.permitted.numbers.accuracy import EXP2_HALVES
from dmlconf.permitted.numbers.error_scale import ErrorScale, store_sizes
from dmlconf.permitted.numbers.half import STORES
from dmlconf.permitted.numbers.rounding import (
    ANY_RESULT,
    HALF_STEP,
    STEP,
    anything_where,
    finite_sizes,
    overflows,
)
from dmlconf.permitted.numbers.span import Span
from dmlconf.permitted.numbers.terms import steps_beside_sum
from dmlconf.precision.accumulation import roundings
from dmlconf.precision.allowance import Interval
from dmlconf.reference.activation.softmax import fused_softmax
from dmlconf.reference.numbers.floats import single
from dmlconf.reference.numbers.half import Store
from dmlconf.reference.products.attention import (
    KEYS,
    OF_QUERIES,
    Heads,
    attention_outputs,
    attention_scores,
    heads_of,
    heads_side_by_side,
    multihead_attention1,
    new_keys,
    score_terms,
)
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.float_limits import (
    FLOAT16_EPSILON,
    LARGEST_FLOAT16,
    LARGEST_FLOAT32,
    LEAST_NORMAL_FLOAT32,
)

__all__ = [
    "multihead_attention1_error_scale",
    "multihead_attention1_interval",
]

_SHARE_HALVES: Final = EXP2_HALVES + 4
"""The error of a share, a power divided by the sum of powers, in half ULPs of FLOAT32."""

_ROUNDINGS: Final = 16
"""The error of a sum of about 16 products, in half ULPs of its error scale."""

_LARGEST_LOSS: Final = 0.125
"""The greatest error of a query's scores, averaged with the shares as weights, for which shares
change nearly in proportion: exp(0.125) is 1.133. With a larger error, any result is right."""


def multihead_attention1_error_scale(
    QueryHeadCount: int, KeyValueHeadCount: int, **fields: Any
) -> tuple[Array | ErrorScale, ...]:
    """Return the error scales of the outputs; of present tensors, the sums of their terms' sizes.

    Measured: kernels truncate to FLOAT16 the queries, keys and values with their bias, and the
    shares of the softmax. DirectML 1.15.4 also truncates what it adds to scores for positions and
    masks, DirectML 1.13.1 the scores and the sum of powers. Simulated results of 1.13.1, truncated
    or rounded to nearest, are candidates.

    Derived in docs/bounds.md, Softmax.
    """
    output: TensorDesc = fields["OutputTensor"]
    dtype, heads = output.DataType.dtype, (QueryHeadCount, KeyValueHeadCount)
    with np.errstate(all="ignore"):
        exact, parts = (heads_of(each, *heads) for each in (fields, _each(np.abs, fields)))
        scores, sizes = _scores(exact, fields, heads)
        biased = fields["BiasTensor"] is not None
        shares = _shares_error_scale(scores, sizes, parts.query.shape[3], dtype, biased=biased)
        values = _weighted_values(exact, parts, fields, scores, shares)
        outputs = attention_outputs(values.sums, parts, fields)
        beside = _beside_large_values(scores, exact.spread(exact.value), values.sums)

    def in_order(part: Array) -> Array:
        return heads_side_by_side(part, parts).reshape(output.Sizes)

    error_scale = values.map(in_order)
    if values.overflows is not None:
        error_scale = error_scale.overflowing_where(in_order(values.overflows))
    if beside is not None:
        error_scale = error_scale.spanned(Span(*map(in_order, beside.ends)))
    if dtype == np.float16:
        with np.errstate(all="ignore"):
            held = (each for store in STORES for each in _simulated_outputs(exact, fields, store))
            error_scale = error_scale.with_others(map(in_order, held), dtype)
    return error_scale, *outputs[1:]


def _scores(
    exact: Heads, fields: Mapping[str, Any], heads: tuple[int, int]
) -> tuple[Array, ErrorScale]:
    """Return the scores and their error scales.

    Any result is right for a query with a score that may overflow.
    """
    dtype = fields["OutputTensor"].DataType.dtype
    absolute = _each(np.abs, fields)
    scores = attention_scores(exact, fields)
    sizes = ErrorScale(_sizes(heads_of(absolute, *heads), absolute), _stored_sizes(exact, fields))
    if not np.isfinite(sizes.sums).all():
        # If a term is infinite, finite ones may overflow to the opposite infinity: the sum is NaN.
        finite = _each(finite_sizes, fields)
        beyond = _sizes(heads_of(finite, *heads), finite) > float(np.finfo(dtype).max)
        sizes, scores = _open_rows(sizes, scores, beyond)
    overflowing = [_overflowing_products(fields, heads)]
    if dtype == np.float16 and fields["BiasTensor"] is not None:
        overflowing.append(_overflowing_scores(exact))
    for beyond in overflowing:
        if beyond.any():
            sizes, scores = _open_rows(sizes, scores, beyond)
    return scores, sizes


def _weighted_values(
    exact: Heads, absolute: Heads, fields: Mapping[str, Any], scores: Array, shares: ErrorScale
) -> ErrorScale:
    """Return the error scale of the values times their shares, by head.

    `absolute` has the heads of the absolute values.
    """
    dtype = fields["OutputTensor"].DataType.dtype
    value = absolute.spread(absolute.value)
    values = shares.times(value)
    # Where a share may be anything, its product with an infinite value may be NaN.
    uncertain = np.asarray((shares.sums >= ANY_RESULT).any(KEYS, keepdims=True))
    values = values.open_where(np.broadcast_to(uncertain, values.sums.shape))
    if fields["BiasTensor"] is not None:
        values = values.holding(fused_softmax(scores, KEYS) @ value)
        infinite = np.asarray(_beyond_float16(exact.spread(exact.value)).any(2, keepdims=True))
        if dtype == np.float16 and infinite.any():
            values = values.overflowing_where(np.broadcast_to(infinite, values.sums.shape))
    unbounded = np.isinf(value)
    if unbounded.any():
        # A share that underflows to 0, times an infinite value, is NaN.
        share = fused_softmax(scores, KEYS)
        vanishing = (share > 0) & (share < float(np.finfo(dtype).tiny))
        undefined = vanishing.astype(np.float64) @ unbounded.astype(np.float64) > 0
        values = values.overflowing_where(undefined)
    if fields["MaskType"] == OF_QUERIES and np.isinf(single(fields["MaskFilterValue"])):
        # By the page, the mask does not change scores of keys that are seen. Measured: an infinite
        # filter value makes them NaN.
        values = values.overflowing_where(np.ones(values.sums.shape, bool))
    alone = _left_alone(fields)
    if alone is not None and alone.any():
        # The earlier contents of the present tensors count, and they may be anything.
        of_batch = alone.any(1).reshape(-1, 1, 1, 1)
        values = values.open_where(np.broadcast_to(of_batch, values.sums.shape))
    return values


def _beside_large_values(scores: Array, value: Array, sums: Array) -> Span | None:
    """Return the span of outputs whose error scales exceed FLOAT32, although the outputs do not.

    None if no error scale does.
    """
    steep = np.isfinite(sums) & (sums > LARGEST_FLOAT32) & (sums < ANY_RESULT)
    if not steep.any():
        return None
    shares = fused_softmax(scores, KEYS)
    steep &= shares @ np.abs(value) <= LARGEST_FLOAT32
    result, reach = shares @ value, sums * (_ROUNDINGS * HALF_STEP)
    return Span(*(np.where(steep, result + side * reach, np.nan) for side in (-1, 1)))


def multihead_attention1_interval(
    QueryHeadCount: int, KeyValueHeadCount: int, **fields: Any
) -> tuple[Interval, ...]:
    """Return the intervals of the outputs; rules use only the intervals of the present tensors.

    The ends are the reference's output or, with BiasTensor, one ULP away, since its addition may
    round the other way. Any value is right where a present tensor is not written.

    Source: measured on DirectML 1.15.4.
    """
    outputs = multihead_attention1(QueryHeadCount, KeyValueHeadCount, **fields)
    alone = _left_alone(fields)
    intervals: list[Interval] = []
    for output in outputs:
        low = high = output
        if fields["BiasTensor"] is not None:
            infinity = output.dtype.type(np.inf)
            low, high = np.nextafter(output, -infinity), np.nextafter(output, infinity)
        if alone is not None and intervals:
            untouched = alone.reshape(len(alone), 1, -1, 1)
            by_position = np.broadcast_to(untouched, output.shape[-4:]).reshape(output.shape)
            low, high = anything_where(by_position, (low, high))
        intervals.append((low, high))
    return tuple(intervals)


def _left_alone(fields: Mapping[str, Any]) -> Array | None:
    """Return which positions of the present tensors are not written, by batch and position.

    If PastSequenceLengthsTensor has 2 for a batch with 3 new keys, the batch writes the positions
    2, 3 and 4. None without PastSequenceLengthsTensor: all are written.
    """
    if fields["PastSequenceLengthsTensor"] is None:
        return None
    first = fields["PastSequenceLengthsTensor"].astype(np.int64).reshape(-1, 1)
    positions = np.arange(fields["OutputPresentKeyTensor"].Sizes[-2])
    outside: Array = (positions < first) | (positions >= first + new_keys(fields))
    return outside


def _open_rows(sizes: ErrorScale, scores: Array, beyond: Array) -> tuple[ErrorScale, Array]:
    """Return error scales and scores; any result is right for queries with a score `beyond`.

    The scores of these queries are set to 0.
    """
    rows = np.asarray(beyond.any(KEYS, keepdims=True))
    return sizes.open_where(rows), np.where(rows, 0.0, scores)


def _overflowing_products(fields: Mapping[str, Any], heads: tuple[int, int]) -> Array:
    """Return which products of finite queries and keys may overflow before Scale makes them small.

    An infinite product times a Scale of 0 is NaN. Measured on DirectML 1.15.4.
    """
    parts = heads_of(_each(finite_sizes, fields), *heads)
    largest = parts.query.max(initial=0) * parts.key.max(initial=0) * parts.query.shape[3]
    if largest <= LARGEST_FLOAT32:
        return np.zeros((1, 1, 1, 1), bool)
    beyond: Array = parts.query @ parts.spread(parts.key).swapaxes(2, 3) > LARGEST_FLOAT32
    return beyond


def _overflowing_scores(parts: Heads) -> Array:
    """Return which scores have a query or a key that overflows FLOAT16 with its bias.

    Measured: 65504 + 1 is infinite on DirectML 1.15.4.
    """
    queries = np.asarray(_beyond_float16(parts.query).any(3, keepdims=True))
    keys = np.asarray(_beyond_float16(parts.spread(parts.key)).any(3))
    either: Array = queries | keys[:, :, np.newaxis]
    return either


def _beyond_float16(values: Array) -> Array:
    return overflows(np.abs(values), np.dtype(np.float16))


def _simulated_outputs(parts: Heads, fields: Mapping[str, Any], store: Store) -> Iterator[Array]:
    """Yield the results of kernels that store scores, sum of powers and shares in FLOAT16.

    With BiasTensor they also store queries, keys and values, after their biases are added. Measured
    on DirectML 1.13.1.
    """
    if fields["BiasTensor"] is not None:
        parts = Heads(*map(store, (parts.query, parts.key, parts.value)))
    for scores in _simulated_scores(parts, fields, store):
        powers = np.exp(scores - scores.max(KEYS, keepdims=True))
        shares = store(powers / store(powers.sum(KEYS, keepdims=True)))
        outputs = shares @ parts.spread(parts.value)
        yield outputs
        yield store(outputs)


def _simulated_scores(parts: Heads, fields: Mapping[str, Any], store: Store) -> Iterator[Array]:
    """Yield the scores as kernels store them.

    With store S, scaled products F, RelativePositionBiasTensor P, mask M and Scale s, they are

    - without P: S(F), or with a mask S(F + S(M));
    - with P alone: S(F + P), or S(S(F) + P);
    - with P and a mask: S(F + s * S(P / s + S(S(M) / s)));
    - with P and a mask, if s is 0 or S(M) / s overflows FLOAT16: S(F + P + S(M)).

    Measured on DirectML 1.13.1.
    """
    fit, position, mask = score_terms(parts, fields)
    if position is None:
        yield store(fit if mask is None else fit + store(mask))
        return
    if mask is None:
        yield store(fit + position)
        yield store(store(fit) + position)
        return
    scale, held = single(fields["Scale"]), store(mask)
    if scale and np.abs(held / scale).max(initial=0.0) <= LARGEST_FLOAT16:
        yield store(fit + scale * store(position / scale + store(held / scale)))
    else:
        yield store(fit + position + held)


def _each(function: Callable[[Array], Array], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with each floating-point tensor replaced by a function of it."""
    return {
        name: function(value)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f"
        else value
        for name, value in fields.items()
    }


def _stored_sizes(parts: Heads, fields: Mapping[str, Any]) -> Array:
    """Return what the intermediates of each score add to the field `stored` of its error scale."""
    score, position, mask = score_terms(parts, fields)
    held = np.zeros_like(score)
    if fields["BiasTensor"] is not None:
        squares = np.square(parts.query) @ np.square(parts.spread(parts.key)).swapaxes(2, 3)
        held += 2 * abs(single(fields["Scale"])) * np.sqrt(squares)
    added = np.zeros_like(score)
    for term in (position, mask):
        if term is not None:
            added = added + term
            held += store_sizes(term, True) + store_sizes(added, True)
    return held


def _shares_error_scale(
    scores: Array, sizes: ErrorScale, head_size: int, dtype: np.dtype[Any], *, biased: bool
) -> ErrorScale:
    """Return the error scale of the shares.

    `change_of_shares` says how the errors of scores move shares. Infinite scores have no error.
    Subnormal shares may be flushed to 0.

    Args:
        head_size: how many products there are in a score.
        biased: whether each factor of a score is a sum with a bias, which is rounded.
    """
    products = 8 + head_size + scores.shape[3]
    shares = fused_softmax(scores, KEYS)
    sizes = sizes.where(~np.isinf(scores), ErrorScale(np.zeros_like(scores)))

    def carried(errors: Array) -> Array:
        changes: Array = errors + (shares * errors).sum(KEYS, keepdims=True)
        return changes

    below = scores.max(KEYS, keepdims=True) - scores
    # As in softmax, the difference and its product with log2(e) may both be truncated.
    own = _SHARE_HALVES + 4 * np.where(np.isfinite(below), below, 0)
    steps = roundings(head_size) + (6 if biased else 2)
    rounding = steps_beside_sum(own + sizes.sums * steps, products)
    loss = (shares * sizes.sums).sum(KEYS, keepdims=True) * STEP
    stored = None
    if dtype == np.float16 and sizes.stored is not None:
        stored = store_sizes(shares, shares == 1)
        stored += shares * carried(sizes.stored)
        loss += (shares * sizes.stored).sum(KEYS, keepdims=True) * FLOAT16_EPSILON
    vanishing = np.where(shares < 2 * LEAST_NORMAL_FLOAT32, shares / HALF_STEP, 0.0)
    error_scale = ErrorScale(
        shares * (1 + change_of_shares(shares, rounding, KEYS)) + vanishing, stored
    )
    return error_scale.open_where(loss > _LARGEST_LOSS)


def _sizes(parts: Heads, fields: Mapping[str, Any]) -> Array:
    """Return the error scale of each score, given heads and fields with absolute values.

    It is the sum of the terms' sizes times the number of terms. A mask of 0 is not counted.
    """
    fit, position, mask = score_terms(parts, fields)
    sizes: Array = np.abs(fit)
    steps: Array | int = 1
    if position is not None:
        sizes += np.abs(position)
        steps += 1
    if mask is not None:
        sizes += np.abs(mask)
        steps = steps + (mask != 0)
    return sizes * steps
