"""Compute cases with the kernels of WebNN in Chromium (LiteRT and XNNPACK) and their flaws.

WebNN computes float16 tensors in float32. A flaw of a kernel also changes the results of later
kernels. So a case is computed with all flaws, with all except one, with only that one, and without
flaws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from math import prod
from typing import Any, Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.faults.computed import Computed
from dmlconf.reference.activation.formulas import FORMULAS
from dmlconf.reference.evaluation import evaluate
from dmlconf.reference.windows.sliding import elements, windows
from dmlconf.tensors.datatypes import Array
from dmlconf.translation.program import NotExpressibleError, Program, Step
from dmlconf.translation.translate import translated

__all__ = ["Flaw", "with_flaw"]


class Flaw(Enum):
    """A wrong result of a kernel; the functions of `webnn` that use a flaw describe it."""

    EXPONENTIAL = auto()
    LOGARITHM = auto()
    ROOT = auto()
    SOFTPLUS = auto()
    PRODUCTS = auto()
    FACTORS = auto()
    WINDOWS = auto()


_ALL: Final = frozenset(Flaw)
_HIGHEST: Final = np.float32(88.37626647949219)
"""127.5 * ln 2. The kernel of the exponential gives infinity for greater numbers; those of the
logarithm and of softplus give no greater numbers, except for NaN."""
_OF_NAN: Final = np.float32(88.78173065185547)
"""What the kernel of the logarithm gives for NaN."""
_LARGE: Final = np.float32(2.0**126)
"""The kernel of the root is wrong for greater numbers: their reciprocals are subnormal."""
_GREATEST: Final = np.finfo(np.float32).max
_TINY: Final = np.finfo(np.float32).tiny


def with_flaw(case: Case, flaw: Flaw) -> Computed | None:
    """Return the outputs with all flaws where this flaw changes them; elsewhere, right outputs.

    None if WebNN cannot express the case, if its program has an unknown operation, or if an output
    has no floating-point type.
    """
    try:
        program = translated(case, "webnn")
    except NotExpressibleError:
        return None
    with np.errstate(all="ignore"):
        wrong = _run(case, program, _ALL)
        if wrong is None:
            return None
        # Two flaws may turn NaN into the same 0, so each is also tried alone.
        pairs = [(_ALL, _ALL - {flaw}), (frozenset({flaw}), frozenset[Flaw]())]
        runs = [[_run(case, program, flaws) or wrong for flaws in pair] for pair in pairs]
    right, outputs = evaluate(case), {}
    for name, array in right.items():
        if name not in wrong or array.dtype.kind != "f":
            return None
        same = np.logical_and(*(_equal(one[name], other[name]) for one, other in runs))
        with np.errstate(over="ignore"):
            outputs[name] = np.where(same, array, wrong[name].astype(array.dtype))
    return Computed(outputs)


def _equal(one: Array, other: Array) -> Array:
    equal: Array = (one == other) | (np.isnan(one) & np.isnan(other))
    return equal


@dataclass(frozen=True, slots=True)
class _Kernels:
    """Kernels with some flaws; most methods have the names of WebNN's operators.

    Attributes:
        case: the case, for products and windows.
        owned: the names of the tensors that are constants.
    """

    flaws: frozenset[Flaw]
    case: Case
    owned: frozenset[str]

    def exp(self, x: Array) -> Array:
        power = np.exp(x)
        if Flaw.EXPONENTIAL not in self.flaws:
            return power
        power = np.where(x > _HIGHEST, np.float32(np.inf), power)
        return np.where(np.isnan(x) | (power < _TINY), np.float32(0), power)

    def log(self, x: Array) -> Array:
        if Flaw.LOGARITHM not in self.flaws:
            return np.log(x)
        whole = np.where(np.abs(x) < _TINY, np.float32(0), x)
        return np.where(np.isnan(x), _OF_NAN, np.minimum(np.log(whole), _HIGHEST))

    def sqrt(self, x: Array) -> Array:
        root = np.sqrt(x)
        if Flaw.ROOT not in self.flaws:
            return root
        root = np.where(x > _LARGE, root * np.float32(1.5), root)
        return np.where(np.isposinf(x), np.float32(np.nan), root)

    def softplus(self, x: Array) -> Array:
        right = np.logaddexp(np.float32(0), x)
        if Flaw.SOFTPLUS not in self.flaws:
            return right
        return np.where(np.isnan(x), np.float32(0), np.minimum(right, _HIGHEST))

    def products(self, step: Step) -> Array:
        if step.operation == "gemm":
            return self._gemm(clamped=step.inputs[1] not in self.owned)
        desc = {**self.case.desc, "FusedActivation": None}
        total = evaluate(replace(self.case, desc=desc))["OutputTensor"].astype(np.float32)
        if Flaw.PRODUCTS not in self.flaws or step.inputs[1] in self.owned:
            return total
        groups, channels = desc["GroupCount"], self.case.inputs()["InputTensor"].shape[1]
        if groups not in (1, channels):
            return np.clip(total, -_GREATEST, _GREATEST)  # Here NaN stays NaN.
        return _clamped(total)

    def _gemm(self, *, clamped: bool) -> Array:
        desc = {**self.case.desc, "FusedActivation": None, "CTensor": None}
        data = {name: each for name, each in self.case.data.items() if name != "CTensor"}
        product = evaluate(replace(self.case, desc=desc, data=data))["OutputTensor"]
        total = _beyond_float32(desc, self.case.inputs(), product.astype(np.float32))
        if clamped and Flaw.PRODUCTS in self.flaws:
            total = _clamped(total)
        if desc["Alpha"] == 0 and Flaw.FACTORS in self.flaws:
            total = np.zeros_like(total)
        added = self.case.inputs().get("CTensor")
        if added is None or (desc["Beta"] == 0 and Flaw.FACTORS in self.flaws):
            return total
        result: Array = total + np.float32(desc["Beta"]) * added.astype(np.float32)
        return result

    def l2Pool2d(self, step: Step) -> Array:
        desc, tensor = self.case.desc, self.case.inputs()["InputTensor"]
        sizes = desc["Strides"], desc["WindowSize"], desc["StartPadding"], desc.get("Dilations")
        over = windows(tensor.shape, desc["OutputTensor"].Sizes, *sizes)
        squares = np.square(evaluate(self.case)["OutputTensor"].astype(np.float32))
        if Flaw.WINDOWS in self.flaws:
            squares = squares * (prod(desc["WindowSize"]) / elements(over)).astype(np.float32)
        if Flaw.PRODUCTS in self.flaws and prod(desc["WindowSize"]) == 1 < prod(desc["Strides"]):
            squares = np.minimum(squares, _GREATEST)
        return self.sqrt(squares)


_UNARY: Final[Mapping[str, Callable[..., Array]]] = {
    "identity": lambda x: x,
    "abs": np.abs,
    "reciprocal": lambda x: 1 / x,
    "relu": lambda x: np.maximum(x, 0),
    "leakyRelu": lambda x, alpha: np.where(x < 0, x * np.float32(alpha), x),
    "elu": lambda x, alpha: np.where(x < 0, np.float32(alpha) * np.expm1(x), x),
    "linear": lambda x, alpha, beta: x * np.float32(alpha) + np.float32(beta),
    "hardSigmoid": lambda x, alpha, beta: np.clip(
        x * np.float32(alpha) + np.float32(beta), np.float32(0), np.float32(1)
    ),
    "clamp": lambda x, minValue, maxValue: np.clip(x, np.float32(minValue), np.float32(maxValue)),
    "gelu": lambda x: np.asarray(FORMULAS["ACTIVATION_GELU"](x.astype(np.float64)), np.float32),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "tanh": np.tanh,
    "softsign": lambda x: x / (1 + np.abs(x)),
    "softmax": lambda x, axis: _softmax(x, axis),
    "reshape": lambda x, newShape: x.reshape(newShape),
    "expand": lambda x, newShape: np.broadcast_to(x, newShape),
    "transpose": lambda x, permutation: x.transpose(permutation),
}
_BINARY: Final[Mapping[str, Callable[[Array, Array], Array]]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "matmul": lambda a, b: np.asarray(
        np.matmul(a.astype(np.float64), b.astype(np.float64)), np.float32
    ),
    "greater": lambda a, b: (a > b).astype(np.float32),
    "lesserOrEqual": lambda a, b: (a <= b).astype(np.float32),
}
_PRODUCTS: Final = frozenset({"conv2d", "convTranspose2d", "gemm"})


def _beyond_float32(desc: Mapping[str, Any], inputs: Mapping[str, Array], product: Array) -> Array:
    """Return GEMM's product, with infinity or NaN where a FLOAT32 sum overflows on the way.

    In FLOAT32, 3e38 * 2 + 3e38 * 3 - infinity is NaN.
    """
    left, right = (inputs[name].astype(np.float32) for name in ("ATensor", "BTensor"))
    left = left if desc["TransA"] == "NONE" else left.swapaxes(-1, -2)
    right = right if desc["TransB"] == "NONE" else right.swapaxes(-1, -2)
    total = np.zeros_like(product)
    for at in range(left.shape[-1]):
        total = total + np.float32(desc["Alpha"]) * left[..., at, None] * right[..., at, None, :]
    return np.where(np.isfinite(total), product, total)


def _clamped(total: Array) -> Array:
    return np.where(np.isnan(total), _GREATEST, np.clip(total, -_GREATEST, _GREATEST))


def _softmax(x: Array, axis: int) -> Array:
    powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
    shares: Array = powers / np.sum(powers, axis=axis, keepdims=True)
    return shares


def _greatest(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the greatest element along axes, of those after the last NaN; NaN if none follow."""
    kept = [axis for axis in range(x.ndim) if axis not in axes]
    rows = x.transpose(*kept, *sorted(axes)).reshape(*(x.shape[axis] for axis in kept), -1)
    greatest = rows[..., 0]
    for index in range(1, rows.shape[-1]):
        greatest = np.where(greatest > rows[..., index], greatest, rows[..., index])
    return greatest.reshape(tuple(1 if axis in axes else n for axis, n in enumerate(x.shape)))


def _normalized(
    x: Array, mean: Array, variance: Array, root: Callable[[Array], Array], epsilon: float
) -> Array:
    deviation: Array = (x - mean) / root(variance + np.float32(epsilon))
    return deviation


def _reduced(kernels: _Kernels, operation: str, x: Array, axes: tuple[int, ...]) -> Array | None:
    """Return a reduction with sums in FLOAT64; None if the operation is unknown."""

    def total(values: Array) -> Array:
        return np.asarray(np.sum(values.astype(np.float64), axis=axes, keepdims=True), np.float32)

    match operation:
        case "reduceMax":
            return _greatest(x, axes)
        case "reduceSum":
            return total(x)
        case "reduceL1":
            return total(np.abs(x))
        case "reduceMean":
            return total(x) / np.float32(prod(x.shape[axis] for axis in axes))
        case "reduceSumSquare":
            return total(np.square(x))
        case "reduceL2":
            return kernels.sqrt(total(np.square(x)))
        case "reduceLogSum":
            return kernels.log(total(x))
        case "reduceLogSumExp":
            return kernels.log(total(kernels.exp(x)))
    return None


def _run(case: Case, program: Program, flaws: frozenset[Flaw]) -> dict[str, Array] | None:
    """Return a program's outputs, FLOAT32; None if it has an unknown operation."""
    kernels = _Kernels(flaws, case, program.owned)
    values = {
        name: array.astype(np.float32)
        for name, array in {**case.inputs(), **program.constants}.items()
    }
    for step in program.steps:
        result = _step(kernels, step, values)
        if result is None:
            return None
        values[step.outputs[0]] = result
    return {name: values[name] for name in program.outputs}


def _step(kernels: _Kernels, step: Step, values: Mapping[str, Array]) -> Array | None:
    operation, attributes = step.operation, dict[str, Any](step.attributes)
    if operation in _PRODUCTS:
        return kernels.products(step)
    if operation == "l2Pool2d":
        return kernels.l2Pool2d(step)
    given = [values[name] for name in step.inputs]
    if operation in ("exp", "log", "sqrt", "softplus"):
        kernel: Callable[[Array], Array] = getattr(kernels, operation)
        return kernel(*given)
    if operation in _BINARY:
        return _BINARY[operation](*given)
    if operation == "layerNormalization":
        axes = tuple(attributes["axes"])
        mean = np.mean(given[0], axis=axes, keepdims=True)
        variance = np.mean(np.square(given[0] - mean), axis=axes, keepdims=True)
        return _normalized(given[0], mean, variance, kernels.sqrt, attributes["epsilon"])
    if operation == "batchNormalization":
        along = (-1,) + (1,) * (given[0].ndim - 2)
        mean, variance = (each.reshape(along) for each in given[1:])
        scale, bias = (values[step.operands[each]].reshape(along) for each in ("scale", "bias"))
        apart = _normalized(given[0], mean, variance, np.sqrt, attributes["epsilon"])
        return apart * scale + bias
    if operation == "cast":
        return given[0] if attributes["type"] in ("FLOAT32", "FLOAT16") else None
    if operation == "where":
        return np.where(given[0] != 0, given[1], given[2])
    if operation in _UNARY and not step.operands:
        return _UNARY[operation](*given, **attributes)
    if operation.startswith("reduce") and attributes["axes"]:
        return _reduced(kernels, operation, given[0], tuple(attributes["axes"]))
    return None
