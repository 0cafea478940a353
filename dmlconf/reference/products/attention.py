"""Attention: sums of values weighted by how well their keys match a query, for several heads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.softmax import change_of_shares, fused_softmax
from dmlconf.reference.numbers.accuracy import EXP2_HALVES
from dmlconf.reference.numbers.error_scale import ErrorScale, store_sizes
from dmlconf.reference.numbers.floats import single
from dmlconf.reference.numbers.half import STORES, Store
from dmlconf.reference.numbers.rounding import HALF_STEP, STEP, finite_sizes
from dmlconf.tensors.datatypes import Array

__all__ = [
    "multihead_attention1",
    "multihead_attention1_error_scale",
]

_KEYS: Final = (3,)
"""The dimension of keys among those of scores: batch, head, query, key."""

_OF_QUERIES: Final = "KEY_QUERY_SEQUENCE_LENGTH_START_END"
"""The mask that gives each batch a range of queries and one of keys."""

_SHARE_HALVES: Final = EXP2_HALVES + 4
"""The error of a power and of the quotient, in halves of the last place of FLOAT32."""


_LARGEST_LOSS: Final = 0.125
"""The greatest error of a score for which the shares' errors are as good as proportional."""


def multihead_attention1(
    QueryHeadCount: int, KeyValueHeadCount: int, **fields: Any
) -> tuple[Array, ...]:
    """[QueryTensor {1, ..., B, S, N * H}], [KeyTensor {1, ..., B, L, M * H}],
    [ValueTensor {1, ..., B, L, M * V}], [StackedQueryKeyTensor {B, S, N, 2, H}],
    [StackedKeyValueTensor {B, L, M, 2, H}], [StackedQueryKeyValueTensor {B, S, N, 3, H}],
    [BiasTensor {1, ..., N * H + M * H + M * V}], [MaskTensor {M0, ...}],
    [RelativePositionBiasTensor {1, ..., B, N, S, P + L}], [PastKeyTensor {1, ..., B, M, P, H}],
    [PastValueTensor {1, ..., B, M, P, V}], [PastSequenceLengthsTensor {1, ..., B}] ->
    OutputTensor {1, ..., B, S, N * V}, [OutputPresentKeyTensor {1, ..., B, M, P + L, H}],
    [OutputPresentValueTensor {1, ..., B, M, P + L, V}]; FLOAT32, FLOAT16; MaskTensor,
    PastSequenceLengthsTensor: INT32

    Return MULTIHEAD_ATTENTION where several heads of queries share one of keys and values.

    There are B batches of S queries, L keys and P past keys, with N heads of queries and M of keys
    and values; H and V are the sizes of a head of keys and of values. MaskType decides the sizes of
    MaskTensor. With PastSequenceLengthsTensor the present tensors hold at least L keys.

    With PastSequenceLengthsTensor, keys and values are written that far into the present ones,
    whose earlier contents count as 0 here, and a query sees no key after its own position.

    Source: the page of DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC leaves the new fields open; these
    were measured.

    Args:
        QueryHeadCount: how many heads of queries there are.
        KeyValueHeadCount: how many heads of keys and values there are, a divisor of those.
        fields: the other fields of the desc.
    """
    with np.errstate(all="ignore"):
        parts = _parts(fields, QueryHeadCount, KeyValueHeadCount)
        shares = fused_softmax(_scores(parts, fields), _KEYS)
        return _outputs(shares @ parts.spread(parts.value), parts, fields)


def multihead_attention1_error_scale(
    QueryHeadCount: int, KeyValueHeadCount: int, **fields: Any
) -> tuple[Array | ErrorScale, ...]:
    """Return the outputs of absolute values, with the scores' errors carried through the softmax.

    Measured: FLOAT16 holds queries, keys and values with their bias, and shares. DirectML 1.15.4
    holds what is added to scores for positions and masks as well; DirectML 1.13.1 the scores and
    the sum of powers, of which a simulation is a candidate. All are truncated. Simulations give
    99.8% of the elements to the bit.

    Derived in docs/bounds.md, Softmax.
    """
    output: TensorDesc = fields["OutputTensor"]
    heads = QueryHeadCount, KeyValueHeadCount
    dtype = output.DataType.dtype
    with np.errstate(all="ignore"):
        exact = _parts(fields, *heads)
        scores = _scores(exact, fields)
        absolute = _each(np.abs, fields)
        parts = _parts(absolute, *heads)
        sizes = ErrorScale(_sizes(parts, absolute), _held_scores(exact, fields))
        if not np.isfinite(sizes.sums).all():
            # Next to an infinity, finite terms may overflow to the other one, which makes NaN.
            finite = _each(finite_sizes, fields)
            beyond = _sizes(_parts(finite, *heads), finite) > float(np.finfo(dtype).max)
            beyond = np.asarray(beyond.any(_KEYS, keepdims=True))
            sizes = sizes.open_where(beyond)
            scores = np.where(beyond, 0.0, scores)
        shares = _shares_error_scale(scores, sizes, parts.query.shape[3], dtype)
        value = parts.spread(parts.value)
        values = shares.times(value)
        if fields["BiasTensor"] is not None:
            values = values.holding(fused_softmax(scores, _KEYS) @ value)
        unbounded = np.isinf(value)
        if unbounded.any():
            # A share that comes out as 0 makes NaN of an infinite value.
            share = fused_softmax(scores, _KEYS)
            vanishing = (share > 0) & (share < float(np.finfo(dtype).tiny))
            undefined = vanishing.astype(np.float64) @ unbounded.astype(np.float64) > 0
            values = values.overflowing_where(undefined)
        if fields["MaskType"] == _OF_QUERIES and np.isinf(single(fields["MaskFilterValue"])):
            # The page has it that keys which are seen are left alone; measured, they become NaN.
            values = values.overflowing_where(np.ones(values.sums.shape, bool))
        outputs = _outputs(values.sums, parts, fields)

    def in_order(part: Array) -> Array:
        return _in_output_order(part, parts).reshape(output.Sizes)

    # The type of the output cannot hold every error scale.
    error_scale = values.map(in_order)
    if values.overflows is not None:
        error_scale = error_scale.overflowing_where(in_order(values.overflows))
    if dtype == np.float16:
        with np.errstate(all="ignore"):
            others = (in_order(_held(exact, fields, store)).astype(dtype) for store in STORES)
            error_scale = replace(error_scale, others=tuple(others))
    return error_scale, *outputs[1:]


def _held(parts: _Parts, fields: Mapping[str, Any], store: Store) -> Array:
    """Return the result of a kernel with scores, the sum of powers and shares in FLOAT16.

    Measured: that is DirectML 1.13.1.

    Args:
        parts: queries, keys and values.
        fields: the desc's.
        store: how FLOAT16 holds a value.
    """
    if fields["BiasTensor"] is not None:
        parts = _Parts(*map(store, (parts.query, parts.key, parts.value)))
    scores = store(_scores(parts, fields))
    powers = np.exp(scores - scores.max(_KEYS, keepdims=True))
    shares = store(powers / store(powers.sum(_KEYS, keepdims=True)))
    values: Array = shares @ parts.spread(parts.value)
    return values


def _each(function: Callable[[Array], Array], fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with a function of each floating-point tensor in its place."""
    return {
        name: function(value)
        if isinstance(value, np.ndarray) and value.dtype.kind == "f"
        else value
        for name, value in fields.items()
    }


def _held_scores(parts: _Parts, fields: Mapping[str, Any]) -> Array:
    """Return the magnitudes of FLOAT16 intermediates of each score."""
    score, position, mask = _terms(parts, fields)
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
    scores: Array, sizes: ErrorScale, head_size: int, dtype: np.dtype[Any]
) -> ErrorScale:
    """Return the shares with what they may lose, in units of the rule's sum of products.

    A share changes by its part of what its own score and all others change by. Infinite scores do
    not change. Shares that come out subnormal may count as 0.

    Args:
        scores: what the softmax is taken of.
        sizes: the error scale of the scores.
        head_size: how many products there are in a score.
        dtype: the output's data type. FLOAT16 holds the shares.
    """
    products = 8 + head_size + scores.shape[3]
    shares = fused_softmax(scores, _KEYS)
    sizes = sizes.where(~np.isinf(scores), ErrorScale(np.zeros_like(scores)))

    def carried(errors: Array) -> Array:
        changes: Array = errors + (shares * errors).sum(_KEYS, keepdims=True)
        return changes

    below = scores.max(_KEYS, keepdims=True) - scores
    own = _SHARE_HALVES + 2 * np.where(np.isfinite(below), below, 0)
    rounding = (own / 2 + sizes.sums * (head_size + 4)) / products
    loss = (shares * sizes.sums).sum(_KEYS, keepdims=True) * STEP
    stored = None
    if dtype == np.float16 and sizes.stored is not None:
        stored = store_sizes(shares, shares == 1)
        stored += shares * carried(sizes.stored)
        loss += (shares * sizes.stored).sum(_KEYS, keepdims=True) * 2.0**-10
    vanishing = np.where(shares < 2 * float(np.finfo(np.float32).tiny), shares / HALF_STEP, 0.0)
    error_scale = ErrorScale(
        shares * (1 + change_of_shares(shares, rounding, _KEYS)) + vanishing, stored
    )
    return error_scale.open_where(loss > _LARGEST_LOSS)


@dataclass(frozen=True)
class _Parts:
    """Queries, keys and values by batch, head, position and element, FLOAT64."""

    query: Array
    key: Array
    value: Array

    def spread(self, tensor: Array) -> Array:
        """Return keys or values with one head for each head of queries."""
        heads = self.query.shape[1] // tensor.shape[1]
        return tensor if heads == 1 else tensor.repeat(heads, 1)


def _parts(fields: Mapping[str, Any], query_heads: int, key_heads: int) -> _Parts:
    """Return what the desc's tensors hold, with the bias, and with past keys and values."""
    query, key, value = _unstacked(fields)
    bias = fields["BiasTensor"]
    if bias is not None:
        widths = query.shape[-1], query.shape[-1] + key.shape[-1]
        first, second, third = np.split(bias.ravel().astype(np.float64), widths)
        query, key, value = query + first, key + second, value + third
    query, key, value = _split(query, query_heads), _split(key, key_heads), _split(value, key_heads)
    if fields["PastKeyTensor"] is not None:
        key = np.concatenate([_last(fields["PastKeyTensor"], 4), key], 2)
        value = np.concatenate([_last(fields["PastValueTensor"], 4), value], 2)
    if fields["PastSequenceLengthsTensor"] is not None:
        lengths = fields["PastSequenceLengthsTensor"].ravel().astype(np.int64)
        key = _written(key, lengths, fields["OutputPresentKeyTensor"])
        value = _written(value, lengths, fields["OutputPresentValueTensor"])
    return _Parts(query, key, value)


def _unstacked(fields: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Return queries, keys and values by batch, position and element of all heads, FLOAT64."""
    names = ("QueryTensor", "KeyTensor", "ValueTensor")
    alone = {name: _last(fields[name], 3) for name in names if fields[name] is not None}
    for stack, members in (
        ("StackedQueryKeyTensor", names[:2]),
        ("StackedKeyValueTensor", names[1:]),
        ("StackedQueryKeyValueTensor", names),
    ):
        if fields[stack] is not None:
            tensor = fields[stack].astype(np.float64)
            for at, name in enumerate(members):
                alone[name] = tensor[:, :, :, at].reshape(*tensor.shape[:2], -1)
    query, key, value = (alone[name] for name in names)
    return query, key, value


def _last(tensor: Array, dimensions: int) -> Array:
    """Return a tensor without leading dimensions of size 1, FLOAT64."""
    return tensor.reshape(tensor.shape[-dimensions:]).astype(np.float64)


def _split(tensor: Array, heads: int) -> Array:
    batches, positions, _ = tensor.shape
    return tensor.reshape(batches, positions, heads, -1).swapaxes(1, 2)


def _written(tensor: Array, lengths: Array, present: TensorDesc) -> Array:
    """Return present keys or values, with new ones written after the past ones."""
    whole = np.zeros(present.Sizes[-4:])
    places = lengths[:, None] + np.arange(tensor.shape[2])
    batch, place = np.nonzero((places >= 0) & (places < whole.shape[2]))
    whole[batch, :, places[batch, place]] = tensor[batch, :, place]
    return whole


def _scores(parts: _Parts, fields: Mapping[str, Any]) -> Array:
    """Return how well each key matches each query, by batch, head, query and key."""
    scores, position, mask = _terms(parts, fields)
    for added in (position, mask):
        if added is not None:
            scores += added
    return scores


def _sizes(parts: _Parts, fields: Mapping[str, Any]) -> Array:
    """Return the magnitudes of the sums for each score, for parts of absolute values."""
    fit, position, mask = _terms(parts, fields)
    sizes: Array = np.abs(fit)
    steps: Array | int = 1
    if position is not None:
        sizes += np.abs(position)
        steps += 1
    if mask is not None:
        sizes += np.abs(mask)
        steps = steps + (mask != 0)
    return sizes * steps


def _terms(parts: _Parts, fields: Mapping[str, Any]) -> tuple[Array, Array | None, Array | None]:
    """Return what is added up to scores: products, the bias of positions, and the mask."""
    query = parts.query * single(fields["Scale"])
    fit = query @ parts.spread(parts.key).swapaxes(2, 3)
    return fit, *_added(fields, fit.shape)


def _added(fields: Mapping[str, Any], shape: tuple[int, ...]) -> tuple[Array | None, Array | None]:
    """Return what is added to each score for its position, and to exclude it.

    Measured: with a BOOLEAN mask the bias of positions is multiplied by Scale as well, and masks of
    lengths and of ranges for each batch take the bias's place. Where these exclude every key, they
    exclude none, which only shows where MaskFilterValue is infinite or outweighs the scores.
    BOOLEAN masks and those of queries multiply MaskFilterValue by 0 for a key that is seen, which
    makes NaN of infinity.
    """
    bias, kind = fields["RelativePositionBiasTensor"], fields["MaskType"]
    position = None if bias is None else _last(bias, 4)
    filtered = single(fields["MaskFilterValue"])
    if kind == "BOOLEAN":
        if position is not None:
            position *= single(fields["Scale"])
        return position, (1 - _last(fields["MaskTensor"], 4)) * filtered
    if kind == "NONE" and fields["PastSequenceLengthsTensor"] is None:
        return position, None
    mask = _mask(fields, shape)
    if kind != _OF_QUERIES:
        mask |= ~mask.any(_KEYS, keepdims=True)
        if position is not None:
            position = np.where(mask, position, 0.0)
        return position, np.where(mask, 0.0, filtered)
    return position, (1.0 - mask) * filtered


def _mask(fields: Mapping[str, Any], shape: tuple[int, ...]) -> Array:
    """Return which keys each query sees, by batch, head, query and key."""
    batches, _, queries, keys = shape
    batch, _, query, key = np.ogrid[:batches, :1, :queries, :keys]
    if fields["PastSequenceLengthsTensor"] is not None:
        lengths = fields["PastSequenceLengthsTensor"].astype(np.int64)
        visible: Array = key <= lengths.reshape(-1, 1, 1, 1) + query
        return visible
    numbers = fields["MaskTensor"].astype(np.int64).reshape(-1, 1, 1, 1)
    first, kind = numbers[:batches], fields["MaskType"]
    if kind == "KEY_SEQUENCE_LENGTH":
        mask: Array = key < first
    elif kind == "KEY_SEQUENCE_END_START":
        mask = (key < first) & (key >= numbers[batches:])
    else:
        # Positions count through all batches, and the end of the last keys means nothing.
        query, key = query + batch * queries, key + batch * keys
        ranges, starts = numbers[batches : 2 * batches + 1], numbers[2 * batches + 1 : -1]
        mask = (query >= ranges[:-1]) & (query < ranges[1:])
        mask = mask & (key >= starts) & (key < starts + first)
    return mask


def _outputs(values: Array, parts: _Parts, fields: Mapping[str, Any]) -> tuple[Array, ...]:
    """Return the outputs that the desc has, in their sizes and types."""
    outputs = (
        ("OutputTensor", _in_output_order(values, parts)),
        ("OutputPresentKeyTensor", parts.key),
        ("OutputPresentValueTensor", parts.value),
    )
    return tuple(
        array.reshape(fields[name].Sizes).astype(fields[name].DataType.dtype)
        for name, array in outputs
        if fields[name] is not None
    )


def _in_output_order(values: Array, parts: _Parts) -> Array:
    """Return the results of the heads, side by side for each query."""
    batches, _, positions, _ = parts.query.shape
    return values.swapaxes(1, 2).reshape(batches, positions, -1)
