"""Kernels that store one intermediate in FLOAT16 pass; most errors of 4 ULP fail.

The tested code is in `dmlconf/permitted/activation/softmax.py`, and in
`dmlconf/permitted/normalization/`: in `batch.py`, `batch_gradients.py`, `mean_variance.py`,
`spans.py` and `gradient_spans.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Any, Final

import numpy as np
import pytest

from dmlconf.cases.building.build import build
from dmlconf.cases.model import Case
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.permitted.numbers.half import STORES
from dmlconf.precision.compare import Comparison, compare
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.numbers.half import Store
from dmlconf.tensors.datatypes import Array
from tests.bundled import bundled

Tensors = Mapping[str, Array]
Total = Callable[[Array], Array]
"""Adds up FLOAT32 numbers along the last dimension."""

SEEDS: Final = 2


def in_order(values: Array) -> Array:
    total: Array = np.cumsum(values, -1, dtype=np.float32)[..., -1]
    return total


def backward(values: Array) -> Array:
    return in_order(values[..., ::-1])


def pairwise(values: Array) -> Array:
    """Add up in NumPy's order: in parts, then the sums of the parts."""
    total: Array = values.sum(-1, dtype=np.float32)
    return total


@dataclass(frozen=True)
class Kernel:
    """How an operator is computed, in FLOAT32.

    Attributes:
        stored: the names of what is stored in FLOAT16.
        store: rounds what is stored.
        last: rounds outputs.
        total: adds up.
    """

    stored: frozenset[str]
    store: Store
    last: Store
    total: Total

    def hold(self, name: str, values: Array) -> Array:
        """Return an intermediate in FLOAT32, rounded to FLOAT16 if it is stored."""
        values = values.astype(np.float32)
        return self._rounded(values, self.store) if name in self.stored else values

    def output(self, values: Array) -> Array:
        return self._rounded(values, self.last).astype(np.float16)

    @staticmethod
    def _rounded(values: Array, store: Store) -> Array:
        return store(values.astype(np.float64)).astype(np.float32)

    def sums(self, values: Array, over: tuple[int, ...]) -> Array:
        """Return the sums over these axes."""
        others = [axis for axis in range(values.ndim) if axis not in over]
        rows = values.transpose([*others, *over])
        rows = rows.reshape(*rows.shape[: len(others)], -1)
        return np.expand_dims(self.total(rows), over)


def lp_normalization(x: Tensors, desc: Mapping[str, Any], kernel: Kernel) -> Tensors:
    values, axis = x["InputTensor"], (desc["Axis"],)
    if desc["P"] == 1:
        norm = kernel.hold("norm", kernel.sums(np.abs(values), axis))
        square = kernel.hold("square", norm * norm)
    else:
        square = kernel.hold("square", kernel.sums(values * values, axis))
    root = kernel.hold("root", np.sqrt(square + np.float32(desc["Epsilon"])))
    return {"OutputTensor": kernel.output(values / root)}


def softmax(x: Tensors, desc: Mapping[str, Any], kernel: Kernel) -> Tensors:
    values = x["InputTensor"]
    axes = tuple(desc["Axes"])
    powers = np.exp(values - values.max(axes, keepdims=True))
    return {"OutputTensor": kernel.output(powers / kernel.hold("sum", kernel.sums(powers, axes)))}


def normalization(x: Tensors, desc: Mapping[str, Any], kernel: Kernel) -> Tensors:
    values, scale, bias = (x[name] for name in ("InputTensor", "ScaleTensor", "BiasTensor"))
    product = normalized(values, scale, tuple(desc["Axes"]), desc["Epsilon"], kernel)
    return {"OutputTensor": kernel.output(product + bias)}


def training(x: Tensors, desc: Mapping[str, Any], kernel: Kernel) -> Tensors:
    values, scale, bias = (x[name] for name in ("InputTensor", "ScaleTensor", "BiasTensor"))
    over = tuple(axis for axis, size in enumerate(scale.shape) if size == 1)
    product = normalized(values, scale, over, desc["Epsilon"], kernel)
    return {"OutputTensor": kernel.output(product + bias)}


def normalized(
    values: Array, scale: Array, over: tuple[int, ...], epsilon: float, kernel: Kernel
) -> Array:
    """Return (x - mean) / root * scale, in the order that the stores require."""
    count = np.float32(np.prod([values.shape[axis] for axis in over]))
    mean = kernel.hold("mean", kernel.sums(values, over) / count)
    difference = kernel.hold("difference", values - mean)
    variance = kernel.hold("variance", kernel.sums(difference * difference, over) / count)
    root = kernel.hold("root", np.sqrt(variance + np.float32(epsilon)))
    if "factor" in kernel.stored:
        return difference * kernel.hold("factor", scale / root)
    if "reciprocal" in kernel.stored:
        return difference * kernel.hold("reciprocal", 1 / root) * scale
    quotient = kernel.hold("quotient", difference / root)
    return kernel.hold("product", quotient * scale)


def training_gradient(x: Tensors, desc: Mapping[str, Any], kernel: Kernel) -> Tensors:
    values, gradient, mean, variance, scale = (
        x[name]
        for name in (
            "InputTensor",
            "InputGradientTensor",
            "MeanTensor",
            "VarianceTensor",
            "ScaleTensor",
        )
    )
    over = tuple(axis for axis, size in enumerate(scale.shape) if size == 1)
    count = np.float32(np.prod([values.shape[axis] for axis in over]))
    root = np.sqrt(variance + np.float32(desc["Epsilon"]))
    centred = kernel.hold("centred", values - mean)
    products = kernel.hold("products", kernel.sums(gradient * (values - mean), over))
    gradients = kernel.sums(gradient, over)
    mean_gradient = kernel.hold("mean", kernel.hold("gradients", gradients) / count)
    difference = kernel.hold("difference", gradient - mean_gradient)
    quotient = kernel.hold("quotient", products / root)
    term = kernel.hold("term", quotient * centred / (root * count))
    factor = kernel.hold("factor", scale / kernel.hold("root", root))
    return {
        "OutputGradientTensor": kernel.output((difference - term) * factor),
        "OutputScaleGradientTensor": kernel.output(products / root),
        "OutputBiasGradientTensor": kernel.output(gradients),
    }


_NORMALIZED: Final = "mean difference variance root reciprocal factor quotient product"

CASES: Final = {
    "lp_normalization/matrix/options[DataType=FLOAT16,Axis=1,P=1,Epsilon=0]": (
        lp_normalization,
        "norm square root",
    ),
    "lp_normalization/matrix/lengths[DataType=FLOAT16,Length=9,P=2,High=3]": (
        lp_normalization,
        "square root",
    ),
    "activation_softmax1/matrix[DataType=FLOAT16,DimensionCount=4,Axis=1]": (softmax, "sum"),
    "mean_variance_normalization2/matrix[DataType=FLOAT16,DimensionCount=4,Axis=2]": (
        normalization,
        _NORMALIZED,
    ),
    "batch_normalization_training/matrix/shared[DataType=FLOAT16,Kept=1x3x1x1,Epsilon=0.1]": (
        training,
        _NORMALIZED,
    ),
    "batch_normalization_training_grad/matrix/lengths[DataType=FLOAT16,Length=33]": (
        training_gradient,
        "products gradients mean difference quotient term centred factor root",
    ),
}
"""By case, the function that computes it, and what a kernel may store."""


@cache
def case_of(identifier: str) -> Case:
    suite = bundled(identifier.partition("/")[0])
    [planned] = [planned for planned in suite.plan() if planned.identifier == identifier]
    return build(planned)


def with_other_data(case: Case, seed: int) -> Case:
    generator = np.random.default_rng(seed)

    def other(name: str, values: Array) -> Array:
        least = 0.5 if name in ("VarianceTensor", "ScaleTensor") else -2
        drawn: Array = np.asarray(generator.uniform(least, 3, values.shape), values.dtype)
        return drawn

    return replace(case, data={name: other(name, each) for name, each in case.inputs().items()})


def judged(case: Case, output: str, actual: Array) -> Comparison:
    expected = evaluate(case)[output]
    return compare(actual, expected, case.rule(output), CaseAllowances(case).of(output))


def kernels(names: str) -> Iterator[Kernel]:
    """Yield kernels that store nothing, one intermediate, or mean and variance."""
    together = [{"mean", "variance"} & set(names.split())] if "variance" in names else []
    stored: list[set[str]] = [set(), *({name} for name in names.split()), *together]
    for chosen, store, last in product(stored, STORES, STORES):
        yield Kernel(frozenset(chosen), store, last, pairwise)
    for total, last in product((in_order, backward), STORES):
        yield Kernel(frozenset(), last, last, total)


@pytest.mark.slow
@pytest.mark.parametrize("identifier", CASES)
def test_kernels_that_store_intermediates_are_accepted(identifier: str) -> None:
    run, names = CASES[identifier]
    for seed in range(SEEDS):
        case = with_other_data(case_of(identifier), seed)
        inputs = {name: each.astype(np.float32) for name, each in case.inputs().items()}
        for kernel in kernels(names):
            outputs = run(inputs, case.desc, kernel)
            for output, actual in outputs.items():
                assert judged(case, output, actual).passed, (seed, kernel, output)


@pytest.mark.parametrize("identifier", CASES)
def test_most_errors_of_4_ulp_are_refused(identifier: str) -> None:
    case = with_other_data(case_of(identifier), 0)
    for name, values in evaluate(case).items():
        for steps in (-4, 4):
            moved = (values.view(np.int16) + np.int16(steps)).view(np.float16)
            assert judged(case, name, moved).differing > values.size / 2, (name, steps)
