"""Error scales of recurrent layers hardly depend on which kernels or sequences run together.

The tested code is in `dmlconf/permitted/recurrent/kernels.py` and
`dmlconf/permitted/recurrent/layers.py`.
"""

from __future__ import annotations

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.model import Case
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.permitted.numbers.error_scale import ErrorScale
from dmlconf.permitted.numbers.rounding import ANY_RESULT
from dmlconf.permitted.recurrent import layers
from dmlconf.tensors.datatypes import Array
from dmlconf.workers.memory import tensor_bytes
from tests.bundled import bundled

ONE_IN = 24
"""One of this many cases is tried."""

LONGEST = 40
"""The most steps of a sequence; longer ones take seconds."""

JUMPS = ("ACTIVATION_SHRINK", "ACTIVATION_THRESHOLDED_RELU")
"""Activations with a jump, at which the last bit of a product decides."""


def cases_of(operator: str, data_type: str = "FLOAT16") -> list[Case]:
    """Return small cases of an operator and a data type, one of every `ONE_IN`."""
    plan = bundled(operator).plan()
    named = [planned for planned in plan if data_type in planned.identifier]
    cases = [build(planned) for planned in named[::ONE_IN]]
    return [
        case
        for case in cases
        if tensor_bytes(case) < 1 << 14
        and case.inputs()["InputTensor"].shape[1] <= LONGEST
        and case.expectation is None
    ]


def error_scales(cases: list[Case]) -> list[ErrorScale]:
    return [scale for case in cases for scale in CaseAllowances(case).error_scales]


def assert_agree(one: Array, other: Array) -> None:
    """Check that nine of ten errors are equal, and the others less than twice as large.

    Hidden nodes with equal values share an error, and a few are equal by chance.
    """
    if one.size:
        same = np.isclose(one, other, rtol=1e-9, atol=0, equal_nan=True)
        assert same.mean() >= 0.9
        np.testing.assert_array_less(one[~same], 2 * other[~same])
        np.testing.assert_array_less(other[~same], 2 * one[~same])


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["gru", "lstm", "rnn"])
def test_errors_of_kernels_simulated_together_and_alone_agree(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = cases_of(operator)
    assert len(cases) > 3
    together = error_scales(cases)
    assert any(scale.spans for scale in together)
    monkeypatch.setattr(layers, "MOST_ERRORS", 1)
    for first, second in zip(together, error_scales(cases), strict=True):
        for part in ("sums", "stored", "deviation"):
            assert_agree(np.asarray(getattr(first, part)), np.asarray(getattr(second, part)))
        for one, other in zip(first.spans, second.spans, strict=True):
            # The middle is what a kernel computes.
            np.testing.assert_allclose(sum(one) / 2, sum(other) / 2, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("operator", ["gru", "lstm", "rnn"])
def test_errors_of_sequences_simulated_alone_and_in_a_batch_agree(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = [
        case
        for case in cases_of(operator, "FLOAT32")
        if not any(name in case.identifier for name in JUMPS)
    ]
    batches = {case.inputs()["InputTensor"].shape[2] for case in cases}
    assert max(batches) > 1
    together = error_scales(cases)
    monkeypatch.setattr(layers, "MOST_ERRORS_OF_PART", 1)
    for whole, parts in zip(together, error_scales(cases), strict=True):
        assert_agree(np.asarray(parts.sums), np.asarray(whole.sums))
        assert (parts.stored is None) == (whole.stored is None)
        if parts.stored is not None and whole.stored is not None:
            assert_agree(parts.stored, whole.stored)
        assert (parts.overflows is None) == (whole.overflows is None)
        if whole.overflows is not None:
            np.testing.assert_array_equal(parts.overflows, whole.overflows)


def test_an_element_permits_any_result_if_one_kernel_does() -> None:
    scales = [ErrorScale(np.array([error, 3.0])) for error in (np.nan, ANY_RESULT, np.inf)]
    together = layers.of_kernels([np.zeros(2)] * 3, scales, terms=5).sums
    np.testing.assert_array_equal(together, [ANY_RESULT, 3.0])
