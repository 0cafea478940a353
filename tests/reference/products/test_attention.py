"""MULTIHEAD_ATTENTION gives means of the values, weighted by the softmax of their scores.

The tested code is in `dmlconf/reference/products/attention.py` and
`dmlconf/permitted/products/attention.py`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.catalogue.desc import TensorDesc
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.tensors.datatypes import Array, DataType
from tests.reference.functions import ATTENTION_TENSORS, function_of

SEEDS = st.integers(0, 2**32 - 1)
COUNTS = st.integers(1, 4)

FILTER_VALUE = -1e9
"""So low that a masked key has no weight."""


def uniform(seed: int, *sizes: int) -> Array:
    """Return FLOAT32 random numbers from -2 to 2."""
    return np.random.default_rng(seed).uniform(-2, 2, sizes).astype(np.float32)


def attend(sizes: tuple[int, ...], heads: int, part: str = "", **fields: Any) -> tuple[Any, ...]:
    """Return the outputs, or a `part` of what is permitted; `sizes` are those of OutputTensor."""
    usual: dict[str, Any] = dict.fromkeys(ATTENTION_TENSORS)
    usual |= {
        "OutputTensor": TensorDesc(DataType.FLOAT32, sizes),
        "Scale": 0.5,
        "MaskFilterValue": FILTER_VALUE,
        "QueryHeadCount": heads,
        "KeyValueHeadCount": heads,
        "MaskType": "NONE",
    }
    function = function_of("MULTIHEAD_ATTENTION1", part)
    outputs: tuple[Array, ...] = function(**{**usual, **fields})
    return outputs


def inputs(seed: int, *, keys: int = 5, heads: int = 2) -> dict[str, Any]:
    """Return random tensors for 2 batches and 3 queries.

    Each head has 4 elements of a query or key, and 3 of a value.
    """
    return {
        "QueryTensor": uniform(seed, 2, 3, heads * 4),
        "KeyTensor": uniform(seed + 1, 2, keys, heads * 4),
        "ValueTensor": uniform(seed + 2, 2, keys, heads * 3),
    }


@given(SEEDS, COUNTS, COUNTS)
def test_outputs_are_means_of_values_weighted_by_softmax(seed: int, heads: int, keys: int) -> None:
    tensors = inputs(seed, keys=keys, heads=heads)
    [actual] = attend((2, 3, heads * 3), heads, **tensors)
    for batch, at, head in np.ndindex(2, 3, heads):
        query = tensors["QueryTensor"][batch, at, head * 4 :][:4].astype(np.float64)
        key = tensors["KeyTensor"][batch, :, head * 4 :][:, :4]
        powers = np.exp(0.5 * key @ query)
        value = powers / powers.sum() @ tensors["ValueTensor"][batch, :, head * 3 :][:, :3]
        np.testing.assert_allclose(actual[batch, at, head * 3 :][:3], value, atol=1e-5)


@given(SEEDS, st.lists(st.integers(0, 5), min_size=2, max_size=2))
def test_masked_keys_have_no_effect(seed: int, lengths: list[int]) -> None:
    tensors = inputs(seed)
    mask = np.array([lengths], np.int32)
    [actual] = attend((2, 3, 6), 2, **tensors, MaskTensor=mask, MaskType="KEY_SEQUENCE_LENGTH")
    whole = np.arange(5) < np.array(lengths).reshape(2, 1, 1, 1)
    boolean = np.broadcast_to(whole, (2, 2, 3, 5)).astype(np.int32)
    [same] = attend((2, 3, 6), 2, **tensors, MaskTensor=boolean, MaskType="BOOLEAN")
    np.testing.assert_allclose(actual, same, atol=1e-6)
    for batch, length in enumerate(lengths):
        if length:
            fewer = {name: array[batch : batch + 1] for name, array in tensors.items()}
            fewer["KeyTensor"] = fewer["KeyTensor"][:, :length]
            fewer["ValueTensor"] = fewer["ValueTensor"][:, :length]
            [short] = attend((1, 3, 6), 2, **fewer)
            np.testing.assert_allclose(actual[batch], short[0], atol=1e-6)


@given(SEEDS)
def test_ranges_of_a_mask_number_queries_and_keys_through_all_batches(seed: int) -> None:
    tensors = inputs(seed)
    # Queries 0 to 3 see 2 keys from key 1 on, query 4 sees 3 keys from key 6 on, and the last
    # number is not used. Batch 1 begins with query 3 and key 5.
    ranges = np.array([2, 3, 0, 4, 5, 1, 6, 99], np.int32)
    kind = "KEY_QUERY_SEQUENCE_LENGTH_START_END"
    [actual] = attend((2, 3, 6), 2, **tensors, MaskTensor=ranges, MaskType=kind)
    seen = np.zeros((2, 2, 3, 5), np.int32)
    seen[0, :, :, 1:3] = 1
    seen[1, :, 1, 1:4] = 1
    [same] = attend((2, 3, 6), 2, **tensors, MaskTensor=seen, MaskType="BOOLEAN")
    np.testing.assert_allclose(actual, same, atol=1e-6)


@given(SEEDS, st.integers(1, 4))
def test_past_keys_count_as_keys_but_get_no_bias(seed: int, past: int) -> None:
    whole = inputs(seed)
    split: dict[str, Any] = {"QueryTensor": whole["QueryTensor"]}
    for name, size in (("Key", 4), ("Value", 3)):
        tensor = whole[f"{name}Tensor"]
        split[f"{name}Tensor"] = tensor[:, past:]
        by_head = tensor[:, :past].reshape(2, past, 2, size)
        split[f"Past{name}Tensor"] = by_head.swapaxes(1, 2)
        split[f"OutputPresent{name}Tensor"] = TensorDesc(DataType.FLOAT32, (2, 2, 5, size))
    actual, key, value = attend((2, 3, 6), 2, **split)
    np.testing.assert_allclose(actual, attend((2, 3, 6), 2, **whole)[0], atol=1e-6)
    assert (key.swapaxes(1, 2).reshape(2, 5, 8) == whole["KeyTensor"]).all()
    assert (value.swapaxes(1, 2).reshape(2, 5, 6) == whole["ValueTensor"]).all()
    _, biased, _ = attend((2, 3, 6), 2, **split, BiasTensor=np.ones(22, np.float32))
    assert (biased[:, :, :past] == key[:, :, :past]).all()
    np.testing.assert_allclose(biased[:, :, past:], key[:, :, past:] + 1, atol=1e-6)


@given(SEEDS)
def test_stacked_tensors_give_the_same_result_as_separate_tensors(seed: int) -> None:
    stacked = uniform(seed, 2, 3, 2, 3, 4)
    query, key, value = (stacked[:, :, :, at].reshape(2, 3, 8) for at in range(3))
    apart = attend((2, 3, 8), 2, QueryTensor=query, KeyTensor=key, ValueTensor=value)[0]
    forms: list[dict[str, Any]] = [
        {"StackedQueryKeyValueTensor": stacked},
        {"StackedQueryKeyTensor": stacked[:, :, :, :2], "ValueTensor": value},
        {"QueryTensor": query, "StackedKeyValueTensor": stacked[:, :, :, 1:]},
    ]
    for form in forms:
        assert (attend((2, 3, 8), 2, **form)[0] == apart).all()


@given(SEEDS)
def test_multihead_attention_equals_attention1_with_equal_head_counts(seed: int) -> None:
    fields: dict[str, Any] = {**dict.fromkeys(ATTENTION_TENSORS), **inputs(seed)}
    fields |= {"OutputTensor": TensorDesc(DataType.FLOAT32, (2, 3, 6)), "Scale": 0.5}
    fields |= {"MaskFilterValue": FILTER_VALUE, "MaskType": "NONE"}
    del fields["PastSequenceLengthsTensor"]
    for part in ("", "error_scale"):
        [actual] = function_of("MULTIHEAD_ATTENTION", part)(HeadCount=2, **fields)
        [newer] = attend((2, 3, 6), 2, part, **inputs(seed))
        if part:
            assert (actual.sums == newer.sums).all()
        else:
            assert (actual == newer).all()


@given(SEEDS)
def test_heads_that_share_keys_equal_heads_with_repeated_keys(seed: int) -> None:
    shared = inputs(seed)
    shared["QueryTensor"] = uniform(seed, 2, 3, 16)
    repeated = dict(shared)
    for name in ("KeyTensor", "ValueTensor"):
        by_head = shared[name].reshape(2, 5, 2, -1)
        repeated[name] = by_head.repeat(2, 2).reshape(2, 5, -1)
    [actual] = attend((2, 3, 12), 4, **shared, KeyValueHeadCount=2)
    assert (actual == attend((2, 3, 12), 4, **repeated)[0]).all()


@given(SEEDS)
def test_with_past_sequence_lengths_no_query_sees_a_later_key(seed: int) -> None:
    tensors = inputs(seed)
    present: dict[str, Any] = {
        "OutputPresentKeyTensor": TensorDesc(DataType.FLOAT32, (2, 2, 5, 4)),
        "OutputPresentValueTensor": TensorDesc(DataType.FLOAT32, (2, 2, 5, 3)),
    }
    lengths = np.zeros(2, np.int32)
    actual, _, _ = attend((2, 3, 6), 2, **tensors, **present, PastSequenceLengthsTensor=lengths)
    causal = np.broadcast_to(np.tri(3, 5, dtype=np.int32), (2, 2, 3, 5))
    [same] = attend((2, 3, 6), 2, **tensors, MaskTensor=causal, MaskType="BOOLEAN")
    np.testing.assert_allclose(actual, same, atol=1e-6)


@pytest.mark.parametrize(("kind", "filtered"), [("BOOLEAN", 2.0), ("KEY_SEQUENCE_LENGTH", 0.0)])
def test_masks_scale_or_remove_the_bias_of_positions(kind: str, filtered: float) -> None:
    tensors = inputs(1)
    position = uniform(4, 2, 2, 3, 5)
    mask = np.ones((2, 2, 3, 5), np.int32) if kind == "BOOLEAN" else np.array([[3, 5]], np.int32)
    fields: dict[str, Any] = {"MaskTensor": mask, "MaskType": kind, "MaskFilterValue": filtered}
    [actual] = attend((2, 3, 6), 2, **tensors, **fields, RelativePositionBiasTensor=position)
    # A BOOLEAN mask multiplies the bias by Scale, 0.5.
    kept = position * (0.5 if kind == "BOOLEAN" else np.arange(5) < mask.reshape(2, 1, 1, 1))
    [same] = attend((2, 3, 6), 2, **tensors, RelativePositionBiasTensor=kept)
    np.testing.assert_allclose(actual, same, atol=1e-6)


@given(SEEDS)
def test_error_scales_are_at_least_as_great_as_results(seed: int) -> None:
    tensors = inputs(seed)
    mask = np.array([[3, 5]], np.int32)
    fields: dict[str, Any] = {"MaskTensor": mask, "MaskType": "KEY_SEQUENCE_LENGTH", **tensors}
    [actual] = attend((2, 3, 6), 2, **fields)
    [scale_of_output] = attend((2, 3, 6), 2, "error_scale", **fields)
    error_scale = ErrorScale.of(scale_of_output).sums
    assert (np.abs(actual) <= error_scale).all()
    assert (error_scale < 1e4).all()


def test_huge_mask_value_in_every_score_permits_any_result() -> None:
    fields: dict[str, Any] = {
        "MaskTensor": np.zeros((2, 2, 3, 5), np.int32),
        "MaskType": "BOOLEAN",
    }
    fields["MaskTensor"][1] = 1
    [actual] = attend((2, 3, 6), 2, "error_scale", **inputs(1), **fields)
    error_scale = ErrorScale.of(actual).sums
    assert (error_scale[0] > 1e38).all()
    assert (error_scale[1] < 1e4).all()


@pytest.mark.parametrize(
    ("kind", "mask"),
    [("KEY_SEQUENCE_LENGTH", [[0, 5]]), ("KEY_SEQUENCE_END_START", [[0, 5], [0, 0]])],
)
@pytest.mark.parametrize("filtered", [-np.inf, -1e38, -10000.0])
def test_a_mask_that_excludes_every_key_excludes_none(
    kind: str, mask: list[list[int]], filtered: float
) -> None:
    given: dict[str, Any] = {
        "MaskTensor": np.array(mask, np.int32),
        "MaskType": kind,
        "MaskFilterValue": filtered,
    }
    [masked] = attend((2, 3, 6), 2, **inputs(1), **given)
    [plain] = attend((2, 3, 6), 2, **inputs(1))
    assert np.array_equal(masked, plain)


def test_an_infinite_mask_value_times_0_is_nan() -> None:
    given: dict[str, Any] = {"MaskType": "BOOLEAN", "MaskFilterValue": -np.inf}
    [masked] = attend(
        (2, 3, 6), 2, **inputs(1), MaskTensor=np.ones((2, 2, 3, 5), np.int32), **given
    )
    assert np.isnan(masked).all()
