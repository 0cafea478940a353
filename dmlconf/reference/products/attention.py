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
"""The axis of keys in scores, whose axes are batch, head, query and key."""

OF_QUERIES: Final = "KEY_QUERY_SEQUENCE_LENGTH_START_END"
"""The MaskType with a range of queries and a range of keys for each batch."""


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

    Return the attention of the heads and, where the desc has these outputs, the present keys and
    values: past ones, then new ones.

    There are B batches of S queries, L keys and P past keys. N is QueryHeadCount, M is
    KeyValueHeadCount; H and V are the sizes of a head of keys and of values. BiasTensor is added to
    queries, new keys and new values, but not to past ones. For each batch and head, with its
    queries q, keys k and values v:

        softmax(q @ k^T * Scale + RelativePositionBias + Mask) @ v

    Each N / M consecutive heads of queries share a head of keys and values. Mask is MaskFilterValue
    for a key that a query does not see, else 0. `_added` lists exceptions to the formula. MaskType
    decides the last sizes of MaskTensor, and which keys are seen:

        BOOLEAN {B, N, S, P + L}: keys whose element is 1
        KEY_SEQUENCE_LENGTH {1, B}: keys before the batch's length
        KEY_SEQUENCE_END_START {2, B}: keys from the batch's start to before its end; MaskTensor
        has all ends, then all starts
        KEY_QUERY_SEQUENCE_LENGTH_START_END {3 * B + 2}: keyLength[0] to keyLength[B - 1],
        queryStart[0] to queryStart[B - 1], queryEnd, keyStart[0] to keyStart[B - 1], keyEnd.
        In batch i, the queries from queryStart[i] to before queryStart[i + 1], or in the last batch
        to before queryEnd, see keyLength[i] keys from keyStart[i] on. Other queries see none.
        Queries and keys are numbered through all batches. keyEnd has no effect

    With PastSequenceLengthsTensor there are no past tensors, no mask and no position bias, and the
    present tensors have L or more positions. A batch's new keys and values are written from its
    past length on; all other elements are 0 here. Query i of a batch, counted from 0, sees the keys
    up to position past length + i, which is included.

    Source: the page of DML_MULTIHEAD_ATTENTION_OPERATOR_DESC. The page of
    DML_MULTIHEAD_ATTENTION1_OPERATOR_DESC lacks head counts and PastSequenceLengthsTensor. These,
    the exceptions, and the addition of MaskFilterValue were measured.
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
    """Return queries, keys and values by head; BiasTensor is added to all but past ones.

    With PastSequenceLengthsTensor, keys and values have the positions of the present tensors.
    """
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
    """Return L, the number of new keys in each batch."""
    for name, axis in (("KeyTensor", -2), ("StackedKeyValueTensor", 1)):
        if fields[name] is not None:
            return int(fields[name].shape[axis])
    stacked = fields["StackedQueryKeyValueTensor"]
    return int((fields["StackedQueryKeyTensor"] if stacked is None else stacked).shape[1])


def _unstacked(fields: Mapping[str, Any]) -> tuple[Array, Array, Array]:
    """Return queries, keys and values, FLOAT64, {batches, positions, elements of all heads}."""
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
    """Return a tensor without leading dimensions, which have size 1, FLOAT64."""
    return tensor.reshape(tensor.shape[-dimensions:]).astype(np.float64)


def _split(tensor: Array, heads: int) -> Array:
    batches, positions, _ = tensor.shape
    return tensor.reshape(batches, positions, heads, -1).swapaxes(1, 2)


def _written(tensor: Array, lengths: Array, present: TensorDesc) -> Array:
    """Return present keys or values: zeros, with new ones from each batch's past length on.

    New keys or values outside of the present tensor are dropped.
    """
    whole = np.zeros(present.Sizes[-4:])
    positions = lengths[:, None] + np.arange(tensor.shape[2])
    batch, new = np.nonzero((positions >= 0) & (positions < whole.shape[2]))
    whole[batch, :, positions[batch, new]] = tensor[batch, :, new]
    return whole


def attention_scores(parts: Heads, fields: Mapping[str, Any]) -> Array:
    """Return the arguments of softmax: {batches, heads, queries, keys}, FLOAT64."""
    scores, position, mask = score_terms(parts, fields)
    for added in (position, mask):
        if added is not None:
            scores += added
    return scores


def score_terms(
    parts: Heads, fields: Mapping[str, Any]
) -> tuple[Array, Array | None, Array | None]:
    """Return the terms of the scores: products times Scale, the position bias, and the mask.

    The bias and the mask are None where nothing is added; they broadcast to the products.
    """
    query = parts.query * single(fields["Scale"])
    fit = query @ parts.spread(parts.key).swapaxes(2, 3)
    return fit, *_added(fields, fit.shape)


def _added(fields: Mapping[str, Any], shape: tuple[int, ...]) -> tuple[Array | None, Array | None]:
    """Return the position bias and the mask that are added to scores, None for an absent one.

    Measured: BOOLEAN multiplies the position bias by Scale. Under KEY_SEQUENCE_LENGTH and
    KEY_SEQUENCE_END_START, a key that is not seen gets MaskFilterValue but no position bias, and a
    batch that would see no key sees all. BOOLEAN and KEY_QUERY_SEQUENCE_LENGTH_START_END multiply
    MaskFilterValue by 0 for a key that is seen, which is NaN if MaskFilterValue is infinite.
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
    """Return which keys each query sees, for other types than BOOLEAN; broadcasts to `shape`."""
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
        # Positions count through all batches; keyEnd, the last number, is not used.
        query, key = query + batch * queries, key + batch * keys
        ranges, starts = numbers[batches : 2 * batches + 1], numbers[2 * batches + 1 : -1]
        mask = (query >= ranges[:-1]) & (query < ranges[1:])
        mask = mask & (key >= starts) & (key < starts + first)
    return mask


def attention_outputs(values: Array, parts: Heads, fields: Mapping[str, Any]) -> tuple[Array, ...]:
    """Return the outputs that the desc has, in their sizes and types.

    Args:
        values: the results of the heads, {batches, heads, queries, V}.
    """
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
    """Return `values`, {batches, heads, queries, V}, as {batches, queries, heads * V}."""
    batches, _, positions, _ = parts.query.shape
    return values.swapaxes(1, 2).reshape(batches, positions, -1)
