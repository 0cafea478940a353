"""A sample of an array has the same elements on every machine, and a digest of the whole array.

The tested code is in `dmlconf/tensors/sample.py`.
"""

from __future__ import annotations

from hashlib import sha256

import numpy as np
import pytest

from dmlconf.tensors.sample import elements_digest, has_digest, sample_indices, sample_of


def test_indices_are_different_ascending_and_include_both_ends() -> None:
    indices = sample_indices(1000, "seed", 300).tolist()
    assert len(set(indices)) == 300
    assert indices == sorted(indices)
    assert (indices[0], indices[-1]) == (0, 999)


def test_indices_are_spread_over_the_array() -> None:
    counts, _ = np.histogram(sample_indices(1 << 20, "seed", 512), 8, (0, 1 << 20))
    assert counts.min() > 32, "each eighth of the array has about 64 of 512 indices"


def test_indices_depend_on_the_seed() -> None:
    first, second = (set(sample_indices(1 << 16, seed, 512).tolist()) for seed in ("a", "b"))
    assert len(first & second) < 32, "about 4 of 512 indices are equal by chance"


def test_the_indices_of_a_seed_never_change() -> None:
    # Recordings hold the elements at these indices.
    assert sample_indices(1 << 16, "seed", 6).tolist() == [0, 25163, 25173, 30854, 38064, 65535]


def test_a_sample_may_have_every_element() -> None:
    assert sample_indices(5, "seed", 5).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("size", "count"), [(5, 6), (5, 1), (0, 2)])
def test_impossible_numbers_of_sampled_elements_are_refused(size: int, count: int) -> None:
    with pytest.raises(ValueError, match=f"no sample of {count} elements can be taken from {size}"):
        sample_indices(size, "seed", count)


def test_a_sample_has_the_elements_at_its_indices() -> None:
    array = np.arange(600, dtype=np.float32).reshape(20, 30).T
    sample = sample_of(array, "seed", 100)
    assert sample.shape == (30, 20)
    assert sample.dtype == np.float32
    rows, columns = np.unravel_index(sample.indices, array.shape)
    assert sample.values.tolist() == array[rows, columns].tolist()
    assert sample.digest == elements_digest(array)


def test_digest_is_of_row_major_little_endian_elements() -> None:
    array = np.array([[1, 2], [3, 4]], ">u2").T.astype("=u2")
    assert elements_digest(array) == sha256(bytes([1, 0, 3, 0, 2, 0, 4, 0])).hexdigest()
    assert elements_digest(np.array([0.0])) != elements_digest(np.array([-0.0]))


@pytest.mark.parametrize("dtype", ["<f2", "<f4", "<f8"])
def test_digest_does_not_depend_on_the_sign_of_nan(dtype: str) -> None:
    array = np.array([1, np.nan, -0.0, np.inf], dtype)
    signed = np.array([1, -np.float64(np.nan), -0.0, np.inf], dtype)
    assert array.tobytes() != signed.tobytes()
    assert elements_digest(array) == elements_digest(signed)
    assert elements_digest(array) == sha256(array.tobytes()).hexdigest()
    assert elements_digest(array) != elements_digest(np.abs(array))


def test_a_digest_of_an_earlier_version_still_fits_its_elements() -> None:
    signed = np.array([1, -np.float64(np.nan), 2], "<f4")
    old = sha256(signed.tobytes()).hexdigest()
    assert old != elements_digest(signed)
    assert has_digest(signed, old)
    assert has_digest(signed, elements_digest(signed))
    assert not has_digest(np.array([1, np.nan, 3], "<f4"), old)
