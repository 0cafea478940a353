"""Attention: sums of values weighted by how well their keys match a query, for several heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.reference.activation.softmax import fused_softmax
from dmlconf.reference.numbers.floats import single
from dmlconf.tensors.datatypes import Array

__all__ = [
    "KEYS",
    "OF_QUERIES",
    "Heads",
    "attention_outputs",
    "attention_scores",
    "heads_of",
    "heads_side_by_side",
    "multihead_attention1",
    "new_keys",
    "score_terms",
]

KEYS: Final = (3,)
"""The dimension of keys among those of scores: batch, head, query, key."""

OF_QUERIES: Final = "KEY_QUERY_SEQUENCE_LENGTH_START_END"
"""The MaskType whose mask gives each batch a range of queries and one of keys."""


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

    Return the attention of each head, and the present keys and values: past ones, then new ones.

    There are B batches of S queries, L keys and P past keys, with N heads of queries
    (QueryHeadCount) and M of keys and values (KeyValueHeadCount); H and V are the sizes of a head
    of keys and of values. For each batch and head, with its queries q, keys k and values v, which
    include their parts of BiasTensor:

        softmax(q @ k^T * Scale + RelativePositionBias + Mask) @ v

    Each N / M consecutive heads of queries share a head of keys and values. Mask is MaskFilterValue
    for a key that a query does not see, else 0. Mask is added to the score, though for masks of
    lengths the page says that it replaces the score. MaskType decides the sizes of MaskTensor, and
    which keys are seen:

        BOOLEAN: those whose element is 1
        KEY_SEQUENCE_LENGTH: those before the batch's length
        KEY_SEQUENCE_END_START: those from the batch's start up to before its end; all ends come
        first in MaskTensor
        KEY_QUERY_SEQUENCE_LENGTH_START_END: for queries from the batch's start up to before the
        next batch's, those from the batch's start of keys on, as many as its length; for other
        queries none. Queries and keys are numbered through all batches

    With PastSequenceLengthsTensor the present tensors hold at least L keys. New keys and values are
    written from the position that this tensor gives for the batch. The elements before that
    position count as 0 here, and a query sees no key after its own position.

    Source: the page of DML_MULTIHEAD_ATTENTION_OPERATOR_DESC. The page of
    DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC does not explain the head counts and
    PastSequenceLengthsTensor; these, and what masks do (`_added`), were measured.
    """
    with np.errstate(all="ignore"):
        parts = heads_of(fields, QueryHeadCount, KeyValueHeadCount)
        shares = fused_softmax(attention_scores(parts, fields), KEYS)
        return attention_outputs(shares @ parts.spread(parts.value), parts, fields)


@dataclass(frozen=True)
class Heads:
    """Queries, keys and values by batch, head, position and element, FLOAT64."""

    query: Array
    key: Array
    value: Array

    def spread(self, tensor: Array) -> Array:
        """Return keys or values with one head for each head of queries."""
        heads = self.query.shape[1] // tensor.shape[1]
        return tensor if heads == 1 else tensor.repeat(heads, 1)


def heads_of(fields: Mapping[str, Any], query_heads: int, key_heads: int) -> Heads:
    """Return queries, keys and values by head, biases added; past keys and values come first."""
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
    return Heads(query, key, value)


def new_keys(fields: Mapping[str, Any]) -> int:
    """Return L, how many keys each batch has besides past ones."""
    for name, axis in (("KeyTensor", -2), ("StackedKeyValueTensor", 1)):
        if fields[name] is not None:
            return int(fields[name].shape[axis])
    stacked = fields["StackedQueryKeyValueTensor"]
    return int((fields["StackedQueryKeyTensor"] if stacked is None else stacked).shape[1])


def _unstacked(fields: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Return queries, keys and values with three dimensions: batches, positions, elements; FLOAT64.

    The elements of all heads follow each other.
    """
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
    """Return a tensor with its last dimensions alone, FLOAT64; those before them have size 1."""
    return tensor.reshape(tensor.shape[-dimensions:]).astype(np.float64)


def _split(tensor: Array, heads: int) -> Array:
    batches, positions, _ = tensor.shape
    return tensor.reshape(batches, positions, heads, -1).swapaxes(1, 2)


def _written(tensor: Array, lengths: Array, present: TensorDesc) -> Array:
    """Return present keys or values: zeros, with new ones from each batch's past length on."""
    whole = np.zeros(present.Sizes[-4:])
    positions = lengths[:, None] + np.arange(tensor.shape[2])
    batch, new = np.nonzero((positions >= 0) & (positions < whole.shape[2]))
    whole[batch, :, positions[batch, new]] = tensor[batch, :, new]
    return whole


def attention_scores(parts: Heads, fields: Mapping[str, Any]) -> Array:
    """Return how well each key matches each query, by batch, head, query and key."""
    scores, position, mask = score_terms(parts, fields)
    for added in (position, mask):
        if added is not None:
            scores += added
    return scores


def score_terms(
    parts: Heads, fields: Mapping[str, Any]
) -> tuple[Array, Array | None, Array | None]:
    """Return the terms of the scores: the products, the bias of positions, and the mask."""
    query = parts.query * single(fields["Scale"])
    fit = query @ parts.spread(parts.key).swapaxes(2, 3)
    return fit, *_added(fields, fit.shape)


def _added(fields: Mapping[str, Any], shape: tuple[int, ...]) -> tuple[Array | None, Array | None]:
    """Return the numbers added to each score: the bias of its position, and the mask.

    Measured: with a BOOLEAN mask the bias of positions is multiplied by Scale as well. With masks
    KEY_SEQUENCE_LENGTH and KEY_SEQUENCE_END_START, MaskFilterValue replaces the bias of an excluded
    key. If these masks would exclude every key of a batch, they exclude none. The other two masks
    multiply MaskFilterValue by 0 for a key that is seen, so an infinite one gives NaN.
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
    if kind != OF_QUERIES:
        mask |= ~mask.any(KEYS, keepdims=True)
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
        # Positions count through all batches; the last number, an end of keys, has no effect.
        query, key = query + batch * queries, key + batch * keys
        ranges, starts = numbers[batches : 2 * batches + 1], numbers[2 * batches + 1 : -1]
        mask = (query >= ranges[:-1]) & (query < ranges[1:])
        mask = mask & (key >= starts) & (key < starts + first)
    return mask


def attention_outputs(values: Array, parts: Heads, fields: Mapping[str, Any]) -> tuple[Array, ...]:
    """Return the outputs that the desc has, in their sizes and types."""
    outputs = (
        ("OutputTensor", heads_side_by_side(values, parts)),
        ("OutputPresentKeyTensor", parts.key),
        ("OutputPresentValueTensor", parts.value),
    )
    return tuple(
        array.reshape(fields[name].Sizes).astype(fields[name].DataType.dtype)
        for name, array in outputs
        if fields[name] is not None
    )


def heads_side_by_side(values: Array, parts: Heads) -> Array:
    """Return the results of the heads, side by side for each query."""
    batches, _, positions, _ = parts.query.shape
    return values.swapaxes(1, 2).reshape(batches, positions, -1)
