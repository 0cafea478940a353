"""Rules refuse mistakes of drivers in sums and normalizations, and permit six orders of additions.

The tested code is in `dmlconf/precision/accumulation.py`, and in `dmlconf/permitted/`: in
`products/gemm.py`, `reduction/reduce.py`, `normalization/mean_variance.py`,
`activation/softmax.py` and `recurrent/gru.py`. The rules are in `schemas/operators/`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, reduce
from itertools import product
from typing import Any, Final

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.model import Case
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.compare import Comparison, compare
from dmlconf.reference.evaluation import evaluate
from dmlconf.tensors.datatypes import Array
from tests.bundled import bundled
from tests.truncation import toward_zero

NORMALIZATION: Final = "mean_variance_normalization1/matrix/options[DataType={}]"

Driver = Callable[[Array, Array], Array]
"""Multiplies two FLOAT64 matrices as a driver does."""

UNEQUAL: Final = {
    "GEMM": "gemm/boundary/large-terms-between-small-ones[DataType={},Inner=256]",
    "GEMM, short": "gemm/boundary/large-terms-between-small-ones[DataType={},Inner=64]",
    "REDUCE": "reduce/boundary/large-terms-between-small-ones[DataType={},Function=SUM,Length=256]",
}
"""FLOAT16 sums lose the small terms of these cases."""

RANDOM: Final = (
    "gemm/matrix/long-sums[DataType={},Inner=16,Low=-1,TransB=NONE]",
    "gemm/matrix/long-sums[DataType={},Inner=255,Low=-1,TransB=NONE]",
    "gemm/matrix/long-sums[DataType={},Inner=4096,Low=0,TransB=NONE]",
    "gemm/matrix/long-sums[DataType={},Inner=4096,Low=-1,TransB=NONE]",
)


@cache
def case_of(identifier: str) -> Case:
    suite = bundled(identifier.partition("/")[0])
    [planned] = [planned for planned in suite.plan() if planned.identifier == identifier]
    case = build(planned)
    return replace(case, data=case.inputs())


def comparison(case: Case, output: str, actual: Array) -> Comparison:
    expected = evaluate(case)[output]
    rounded = actual.reshape(expected.shape).astype(expected.dtype)
    return compare(rounded, expected, case.rule(output), CaseAllowances(case).of(output))


def matrices(case: Case) -> tuple[Array, Array]:
    """Return the matrices that a case multiplies; REDUCE multiplies by ones."""
    inputs = [array.astype(np.float64) for array in case.inputs().values()]
    if case.operator_name == "REDUCE":
        return inputs[0], np.ones((inputs[0].shape[-1], 1))
    return inputs[0], inputs[1]


def rounding_to(dtype: type[np.floating[Any]]) -> Callable[[Array], Array]:
    return lambda values: values.astype(dtype).astype(np.float64)


half, single = rounding_to(np.float16), rounding_to(np.float32)


def in_order(indices: Sequence[int], store: Callable[[Array], Array]) -> Driver:
    """Return a driver that adds up in this order; `store` rounds each sum."""

    def summed(a: Array, b: Array) -> Array:
        terms = (np.outer(a[:, k], b[k]) for k in indices)
        return reduce(lambda total, term: store(total + term), terms, np.zeros((len(a), len(b[0]))))

    return summed


def tiled(
    size: int, inner: Callable[[Array], Array], outer: Callable[[Array], Array], *, backward: bool
) -> Driver:
    """Return a driver that adds up tiles of `size` terms, and then their sums.

    `inner` rounds sums within tiles, and `outer` sums of tiles.
    """

    def summed(a: Array, b: Array) -> Array:
        total = np.zeros((len(a), len(b[0])))
        for start in range(0, len(b), size):
            indices = range(start, min(start + size, len(b)))
            order = list(reversed(indices)) if backward else list(indices)
            total = outer(total + in_order(order, inner)(a, b))
        return total

    return summed


def untiled(store: Callable[[Array], Array], *, backward: bool = False) -> Driver:
    return lambda a, b: tiled(len(b), store, store, backward=backward)(a, b)


def pairwise(a: Array, b: Array) -> Array:
    """Add up neighbours in FLOAT32, then neighbouring sums."""
    terms = [single(np.outer(a[:, k], b[k])) for k in range(len(b))]
    while len(terms) > 1:
        odd = terms[len(terms) // 2 * 2 :]
        terms = [single(x + y) for x, y in zip(terms[0::2], terms[1::2], strict=False)] + odd
    return terms[0]


def slices_held_in_float16(a: Array, b: Array) -> Array:
    """Add up as DirectML 1.15.4 does: in 4 slices, each truncated to FLOAT16."""
    total = np.zeros((len(a), len(b[0])))
    for k in np.array_split(np.arange(len(b)), 4):
        total += toward_zero(a[:, k] @ b[k])
    return total


FLOAT32_SUMS: Final[dict[str, Driver]] = {
    "forward": untiled(single),
    "backward": untiled(single, backward=True),
    "pairwise": pairwise,
    **{f"blocks of {n}": tiled(n, single, single, backward=False) for n in (8, 64, 256)},
}

FLOAT16_SUMS: Final[dict[str, Driver]] = {
    "FLOAT16 forward": untiled(half),
    "FLOAT16 backward": untiled(half, backward=True),
    **{
        f"FLOAT16 in tiles of {n}": tiled(n, half, single, backward=backward)
        for n, backward in ((16, False), (16, True), (32, False), (64, True))
    },
}


def one_off(a: Array, b: Array) -> Array:
    sums = a @ b
    sums.flat[np.abs(sums).argmax()] *= 1.01
    return sums


WRONG: Final[dict[str, Driver]] = {
    "last product dropped": lambda a, b: a[:, :-1] @ b[:-1],
    "last 8 products dropped": lambda a, b: a[:, :-8] @ b[:-8],
    "negated": lambda a, b: -(a @ b),
    "zero": lambda a, b: 0 * (a @ b),
    "times 1.1": lambda a, b: 1.1 * (a @ b),
    "one 1% off": one_off,
}


@pytest.mark.parametrize("driver", FLOAT16_SUMS)
@pytest.mark.parametrize("identifier", UNEQUAL.values(), ids=UNEQUAL)
def test_sums_held_in_float16_fail_where_terms_are_unequal(identifier: str, driver: str) -> None:
    case = case_of(identifier.format("FLOAT16"))
    assert not comparison(case, "OutputTensor", FLOAT16_SUMS[driver](*matrices(case))).passed


@pytest.mark.parametrize("driver", FLOAT32_SUMS)
@pytest.mark.parametrize("data_type", ["FLOAT32", "FLOAT16"])
@pytest.mark.parametrize("identifier", [*RANDOM, *UNEQUAL.values()])
def test_six_orders_of_float32_additions_pass(identifier: str, data_type: str, driver: str) -> None:
    case = case_of(identifier.format(data_type))
    assert comparison(case, "OutputTensor", FLOAT32_SUMS[driver](*matrices(case))).passed


@pytest.mark.parametrize("identifier", [RANDOM[1], RANDOM[3], UNEQUAL["GEMM"]])
def test_sums_of_four_slices_may_be_truncated_to_float16(identifier: str) -> None:
    case = case_of(identifier.format("FLOAT16"))
    assert comparison(case, "OutputTensor", slices_held_in_float16(*matrices(case))).passed


@pytest.mark.parametrize(
    ("identifier", "data_type", "driver"),
    [
        (identifier, data_type, driver)
        for identifier, data_type, driver in product(RANDOM, ("FLOAT32", "FLOAT16"), WRONG)
        # The last of 4,096 positive products is less than a ULP of their FLOAT16 sum.
        if (identifier, data_type, driver) != (RANDOM[2], "FLOAT16", "last product dropped")
    ],
)
def test_each_of_six_wrong_products_fails(identifier: str, data_type: str, driver: str) -> None:
    case = case_of(identifier.format(data_type))
    assert not comparison(case, "OutputTensor", WRONG[driver](*matrices(case))).passed


@pytest.mark.parametrize("off", [1, -1])
@pytest.mark.parametrize(
    "identifier",
    [
        "reduce/boundary/ones-in-float32",
        "reduce/boundary/integers-up-to-2-to-the-24",
        "gemm/matrix/sums-of-ones[DataType=FLOAT32,Inner=4096]",
    ],
)
def test_sums_of_whole_numbers_that_float32_holds_are_exact(identifier: str, off: int) -> None:
    case = case_of(identifier)
    right = evaluate(case)["OutputTensor"]
    wrong = right.copy()
    wrong.flat[-1] += off
    assert comparison(case, "OutputTensor", right).passed
    assert not comparison(case, "OutputTensor", wrong).passed


def normalized(case: Case, *, unbiased: bool = False, outside: bool = False) -> Array:
    """Return MEAN_VARIANCE_NORMALIZATION1 in FLOAT64, right or wrong.

    `unbiased` divides the squares by n - 1; `outside` adds Epsilon to the root.
    """
    values = case.inputs()["InputTensor"].astype(np.float64)
    axes, epsilon = tuple(case.desc["Axes"]), case.desc["Epsilon"]
    centred = values - values.mean(axes, keepdims=True)
    variance = centred.var(axes, keepdims=True, ddof=int(unbiased))
    divisor = np.sqrt(variance) + epsilon if outside else np.sqrt(variance + epsilon)
    result: Array = centred / divisor
    for name, operation in (("ScaleTensor", np.multiply), ("BiasTensor", np.add)):
        if name in case.inputs():
            result = operation(result, case.inputs()[name].astype(np.float64))
    return result


@pytest.mark.parametrize(
    "options", ["FLOAT32,Axes=2,{},Epsilon=0.1", "FLOAT16,Axes=1,{},Epsilon=1e-05"]
)
def test_a_variance_divided_by_n_minus_1_fails(options: str) -> None:
    case = case_of(NORMALIZATION.format(options.format("NormalizeVariance=True")))
    assert comparison(case, "OutputTensor", normalized(case)).passed
    assert not comparison(case, "OutputTensor", normalized(case, unbiased=True)).passed


def test_an_epsilon_outside_the_root_fails() -> None:
    case = case_of(NORMALIZATION.format("FLOAT32,Axes=2,NormalizeVariance=True,Epsilon=0.1"))
    assert comparison(case, "OutputTensor", normalized(case)).passed
    assert not comparison(case, "OutputTensor", normalized(case, outside=True)).passed


@pytest.mark.parametrize(
    ("identifier", "output"),
    [
        ("activation_softmax1/sizes/outputs[Sizes=33x65,DataType=FLOAT16]", "OutputTensor"),
        ("mean_variance_normalization1/boundary/exact-in-float16", "OutputTensor"),
    ],
)
def test_each_nan_for_a_finite_result_is_a_difference(identifier: str, output: str) -> None:
    case = case_of(identifier)
    right = evaluate(case)[output]
    assert np.isfinite(right).all()
    wrong = right.copy()
    wrong[..., 0, :] = np.nan
    assert comparison(case, output, right).passed
    assert comparison(case, output, wrong).differing == np.isnan(wrong).sum()


def test_a_result_between_those_of_two_known_kernels_fails() -> None:
    layer = "gru/boundary/sequence-of-length-0[DataType=FLOAT16,Direction=FORWARD,"
    case = case_of(f"{layer}LinearBeforeReset=False]")
    right = evaluate(case)["OutputSequenceTensor"]
    # For the first element known kernels give -0.02532 or -0.02515, and none a number between.
    for value, differing in ((-0.02531, 0), (-0.02514, 0), (-0.02523, 1)):
        actual = right.copy()
        actual.flat[0] = value
        assert comparison(case, "OutputSequenceTensor", actual).differing == differing
