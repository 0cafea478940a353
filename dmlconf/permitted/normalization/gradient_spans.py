"""The values that gradients of batch normalisation may have if FLOAT16 holds intermediates.

Derived in docs/bounds.md, What FLOAT16 holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dmlconf.permitted.normalization.spans import means_of, sums_of
from dmlconf.permitted.numbers.error_scale import quantum_of
from dmlconf.permitted.numbers.rounding import sizes_of
from dmlconf.permitted.numbers.span import Span
from dmlconf.reference.numbers.floats import wide
from dmlconf.tensors.datatypes import Array

__all__ = ["GradientInputs"]


@dataclass(frozen=True, slots=True)
class GradientInputs:
    """The inputs from which gradients are computed.

    Attributes:
        tensor, gradient, mean, scale: InputTensor, InputGradientTensor, MeanTensor and ScaleTensor.
        deviation: the root of `variance + epsilon`, FLOAT64.
        over: the dimensions in which elements share mean and variance.
    """

    tensor: Array
    gradient: Array
    mean: Array
    scale: Array
    deviation: Array
    over: tuple[int, ...]

    def of_scale(self) -> Span:
        """Return the span of OutputScaleGradientTensor; a sum may be stored before the division."""
        return self._products() / self.deviation

    def of_input(self, exact: Array) -> Iterator[Span]:
        """Yield spans of OutputGradientTensor for each way to store the mean gradient.

        A kernel may also store in FLOAT16

        - the sum of products, whole, or divided by the deviation or by the count;
        - that sum times `x - mean`, divided by the count and the square of the deviation;
        - the gradient less its mean;
        - if the mean gradient is FLOAT32: `x - mean`, the deviation and `scale / deviation`.

        Args:
            exact: which mean gradients are the same however they are computed.
        """
        products = self._products()
        count = self.tensor.size // self.deviation.size
        divisors = self.deviation, np.asarray(float(count))
        products = products.or_any((products / each).held() * each for each in divisors)
        products = products / (count * np.square(self.deviation))
        centred = (Span.of(wide(self.tensor)) - wide(self.mean)).rounded()
        term = (products * centred).rounded().held()
        factor = (Span.of(wide(self.scale)) / self.deviation).rounded()
        groups = means_of(wide(self.gradient), self.over, exact, of_held_sums=True)
        for number, group in enumerate(groups):
            mean_gradient = group[0].or_any(group[1:])
            difference = (Span.of(wide(self.gradient)) - mean_gradient).rounded()
            yield ((difference.held() - term).rounded() * factor).rounded()
            if number == 0:
                own = (difference - (products * centred.held()).rounded()).rounded()
                yield (own * factor).rounded()
                held = (Span.of(wide(self.scale)) / Span.of(self.deviation).held()).held()
                plain = (difference - (products * centred).rounded()).rounded()
                yield (plain * held.or_any([factor])).rounded()

    def _products(self) -> Span:
        terms = wide(self.gradient) * (wide(self.tensor) - wide(self.mean))
        sizes = sizes_of(self.gradient) * (sizes_of(self.tensor) + sizes_of(self.mean))
        quantum = min(quantum_of(self.tensor), quantum_of(self.mean))
        exact = sizes.sum(self.over, keepdims=True) <= quantum_of(self.gradient) * quantum * 2.0**24
        return sums_of(terms, sizes, self.over, exact).held()
