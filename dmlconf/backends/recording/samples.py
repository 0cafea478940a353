"""Compare, or fill in, outputs of which a recording has only a digest and a sample."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.model import Case
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.allowance import Allowance, elements_at
from dmlconf.precision.compare import Comparison, compare
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.sample import Sample, has_digest, little_endian, with_one_nan

__all__ = ["Pair", "filled", "is_whole", "paired"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Elements of two outputs, at the same indices.

    Attributes:
        sample: the sample that has these indices; None if all elements are compared.
    """

    actual: Array
    expected: Array
    sample: Sample | None = None

    def allowance(self, allowance: Allowance) -> Allowance:
        """Return the allowance of the compared elements."""
        return allowance.at(self.sample.indices) if self.sample else allowance

    def located(self, comparison: Comparison) -> Comparison:
        """Return the comparison with coordinates in the whole output."""
        if self.sample is None:
            return comparison
        sample = self.sample

        def coordinates(at: tuple[int, ...]) -> tuple[int, ...]:
            index = int(sample.indices[at[0]])
            return tuple(int(each) for each in np.unravel_index(index, sample.shape))

        worst = comparison.worst_coordinates
        return replace(
            comparison,
            worst_coordinates=None if worst is None else coordinates(worst),
            first=tuple(
                replace(d, coordinates=coordinates(d.coordinates)) for d in comparison.first
            ),
        )

    def index(self, coordinates: tuple[int, ...]) -> int:
        """Return the index of a compared element among all compared elements.

        Args:
            coordinates: where the element is in the whole output.
        """
        if self.sample is None:
            return int(np.ravel_multi_index(coordinates, self.expected.shape))
        whole = int(np.ravel_multi_index(coordinates, self.sample.shape))
        return int(np.flatnonzero(self.sample.indices == whole)[0])


def paired(actual: Array | Sample, expected: Array | Sample) -> Pair:
    """Return the comparable elements of two outputs of one type and shape.

    - Two whole outputs: all elements.
    - A whole output and a sample taken from it, as `is_whole` tells: all elements of the whole
      output, on both sides.
    - A whole output and any other sample: the elements at the sample's indices.
    - Two samples: the elements at the indices that both have.
    """
    if isinstance(actual, Sample):
        if isinstance(expected, Sample):
            return _common(actual, expected)
        if is_whole(expected, actual):
            return Pair(expected, expected)
        return Pair(actual.values, elements_at(expected, actual.indices), actual)
    if isinstance(expected, Sample):
        if is_whole(actual, expected):
            return Pair(actual, actual)
        return Pair(elements_at(actual, expected.indices), expected.values, expected)
    return Pair(actual, expected)


def _common(actual: Sample, expected: Sample) -> Pair:
    """Return the elements that both samples have; every sample has the first and the last one."""
    indices, ours, theirs = np.intersect1d(
        actual.indices, expected.indices, assume_unique=True, return_indices=True
    )
    values = actual.values[ours]
    sample = replace(actual, indices=indices, values=values)
    return Pair(values, expected.values[theirs], sample)


def is_whole(output: Array | Sample, sample: Sample) -> bool:
    """Return whether an output is whole, and has a sample's digest and elements.

    All NaN count as equal.
    """
    if isinstance(output, Sample) or not has_digest(output, sample.digest):
        return False
    ours, theirs = map(with_one_nan, (elements_at(output, sample.indices), sample.values))
    return little_endian(ours) == little_endian(theirs)


def filled(case: Case, recorded: Outputs, reference: Outputs) -> Outputs:
    """Return recorded outputs, with elements of the reference where only a sample was recorded.

    - If the reference's output has the recorded digest and the sample's elements, it replaces the
      sample.
    - Otherwise, if it meets the rule at the sample's indices, it is added with the sample's
      elements there, and the sample is kept.
    - Otherwise, only the sample is kept.
    """
    arrays, samples = dict(recorded.arrays), dict(recorded.samples)
    for name, sample in recorded.samples.items():
        right = reference.arrays[name]
        pair = paired(right, sample)
        if pair.sample is None:
            arrays[name] = right
            del samples[name]
            continue
        allowance = pair.allowance(CaseAllowances(case).of(name))
        if compare(pair.actual, pair.expected, case.rule(name), allowance).passed:
            elements = np.array(right).ravel()
            elements[sample.indices] = sample.values
            arrays[name] = elements.reshape(sample.shape)
    return replace(recorded, arrays=arrays, samples=samples)
