"""Change one or two elements of a right output, and count which changes cases notice.

`perturbations.yaml` says which elements are undefined, so that they stay, and for which kinds a
smaller share must be noticed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from dmlconf.catalogue.precision import RuleKind
from dmlconf.documents.reader import read_document
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.rules import undefined
from dmlconf.strength.injection import Site
from dmlconf.strength.judging import CaseJudge
from dmlconf.tensors.datatypes import Array

__all__ = [
    "KINDS",
    "Exceptional",
    "PerturbationTally",
    "defined_elements",
    "exceptional",
    "perturb",
    "perturbations",
]

_MOST_MISSED: Final = 3
"""A tally names at most this many of the perturbed outputs that pass."""

_Change = Callable[[Array, Array, np.random.Generator], Array | None]
"""Changes a flat output, given a mask of its defined elements; None if it cannot."""


def _one_of(candidates: Array, rng: np.random.Generator) -> int | None:
    indices = np.flatnonzero(candidates)
    return int(indices[rng.integers(len(indices))]) if len(indices) else None


def _with(values: Array, index: int, value: Any) -> Array:
    changed = values.copy()
    changed[index] = value
    return changed


def _at_one_element(
    values: Array, moved: Array, usable: Array, rng: np.random.Generator
) -> Array | None:
    index = _one_of(usable, rng)
    return None if index is None else _with(values, index, moved[index])


def _percent(values: Array, defined: Array, rng: np.random.Generator) -> Array | None:
    if values.dtype.kind != "f":
        return None
    moved = (values * values.dtype.type(rng.choice((0.99, 1.01)))).astype(values.dtype)
    usable = defined & np.isfinite(values) & np.isfinite(moved) & (moved != values)
    return _at_one_element(values, moved, usable, rng)


def _largest_zeroed(values: Array, defined: Array, rng: np.random.Generator) -> Array | None:
    size = np.abs(values.astype(np.float64))
    size[~np.isfinite(size) | ~defined] = 0
    index = int(size.argmax())
    return _with(values, index, 0) if size[index] > 0 else None


def _two_swapped(values: Array, defined: Array, rng: np.random.Generator) -> Array | None:
    one = _one_of(defined, rng)
    if one is None:
        return None
    different = defined & (values != values[one])
    if values.dtype.kind == "f" and np.isnan(values[one]):
        different &= ~np.isnan(values)
    other = _one_of(different, rng)
    if other is None:
        return None
    return _with(_with(values, one, values[other]), other, values[one])


def _sign_flipped(values: Array, defined: Array, rng: np.random.Generator) -> Array | None:
    if values.dtype.kind == "u":
        return None
    moved = -values
    return _at_one_element(values, moved, defined & (moved != values) & (values == values), rng)


def _off_by_one(values: Array, defined: Array, rng: np.random.Generator) -> Array | None:
    if values.dtype.kind == "f":
        return None
    up = bool(rng.integers(2))
    info = np.iinfo(values.dtype)
    step = values.dtype.type(1)
    moved = values + step if up else values - step
    return _at_one_element(values, moved, defined & (values != (info.max if up else info.min)), rng)


def _ulp(steps: int, dtype: Any) -> _Change:
    """Return a function that moves an element, but no subnormal one, by `steps` ULP."""

    def change(values: Array, defined: Array, rng: np.random.Generator) -> Array | None:
        if values.dtype != dtype:
            return None
        bits = values.view(f"i{values.itemsize}")
        moved = (bits + bits.dtype.type(steps * rng.choice((-1, 1)))).view(values.dtype)
        tiny = np.finfo(values.dtype).tiny
        usable = defined & np.isfinite(values) & np.isfinite(moved)
        usable &= (np.abs(values) >= tiny) & (np.abs(moved) >= tiny)
        usable &= np.signbit(values) == np.signbit(moved)
        return _at_one_element(values, moved, usable, rng)

    return change


KINDS: Final[Mapping[str, _Change]] = {
    "1% off": _percent,
    "largest zeroed": _largest_zeroed,
    "two swapped": _two_swapped,
    "sign flipped": _sign_flipped,
    "integer off by one": _off_by_one,
    "1,000 ULP in FLOAT32": _ulp(1000, np.float32),
    "4 ULP in FLOAT16": _ulp(4, np.float16),
}


@dataclass(slots=True)
class PerturbationTally:
    """The verdicts on one kind of perturbation of one operator.

    Attributes:
        tried: how many outputs were perturbed.
        caught: how many of them do not pass.
        missed: the first three that pass, as case and output.
    """

    tried: int = 0
    caught: int = 0
    missed: list[str] = field(default_factory=list)

    def add(self, later: PerturbationTally) -> None:
        """Add the results of later cases."""
        self.tried += later.tried
        self.caught += later.caught
        self.missed = [*self.missed, *later.missed][:_MOST_MISSED]


@dataclass(frozen=True, slots=True)
class Exceptional:
    """A kind of perturbation of which a smaller share than usual must be caught.

    Attributes:
        target: the share in percent.
        operators: the operators that lower the share; all others must reach the usual share.
    """

    target: float
    reason: str
    operators: frozenset[str]


@cache
def _facts() -> Mapping[str, Any]:
    data: Mapping[str, Any] = read_document(Path(__file__).with_name("perturbations.yaml")).data
    return data


@cache
def exceptional() -> Mapping[str, Exceptional]:
    """Return the kinds of which a smaller share must be caught."""
    return {
        kind: Exceptional(entry["target"], entry["reason"], frozenset(entry["operators"]))
        for kind, entry in _facts()["exceptions"].items()
    }


def perturb(
    tallies: dict[tuple[str, str], PerturbationTally], site: Site, judged: CaseJudge, seed: int
) -> None:
    """Try each possible kind once on an output, and add the results to the tallies."""
    for kind, changed in perturbations(site, judged.allowances, seed):
        tally = tallies.setdefault((kind, site.case.operator_name), PerturbationTally())
        tally.tried += 1
        if judged.fails(site, changed):
            tally.caught += 1
        elif len(tally.missed) < _MOST_MISSED:
            tally.missed.append(f"{site.case.identifier} {site.name}")


def perturbations(site: Site, allowances: CaseAllowances, seed: int) -> Iterator[tuple[str, Array]]:
    """Yield the name of each possible kind, and the output with such a perturbation.

    The seed and the names decide which elements are perturbed.
    """
    values = np.ascontiguousarray(site.correct).ravel()
    if not values.size:
        return
    defined = defined_elements(site, allowances)
    for kind, change in KINDS.items():
        name = f"{site.case.identifier} {site.name} {kind}"
        rng = np.random.default_rng([seed, *name.encode()])
        with np.errstate(all="ignore"):
            changed = change(values, defined, rng)
        if changed is not None:
            yield kind, changed.reshape(site.correct.shape)


def defined_elements(site: Site, allowances: CaseAllowances) -> Array:
    """Return a flat mask of the elements that `perturbations.yaml` does not call undefined."""
    everything = np.ones(site.correct.size, bool)
    entry = _facts()["undefined"].get(site.case.operator_name)
    if entry is None or site.name not in entry["outputs"]:
        return everything
    inputs = site.case.inputs()
    if "all_zero" in entry:
        origin: Array = np.all([inputs[name].ravel() == 0 for name in entry["all_zero"]], axis=0)
        return ~origin
    if site.rule.kind != RuleKind.INTERVAL:
        return everything
    interval = allowances.of(site.name).interval
    if interval is None:
        return everything
    open_ = undefined(*interval).ravel()
    if "zero_in" in entry:
        zeros = [(inputs[name] == 0) for name in entry["zero_in"] if name in inputs]
        open_ &= np.any([_spread(zero, site.correct.shape) for zero in zeros], axis=0)
    return ~open_


def _spread(zero: Array, shape: tuple[int, ...]) -> Array:
    """Return a flat mask of an output's elements that the zeros of an input may affect."""
    if zero.shape == shape:
        return zero.ravel()
    return np.full(int(np.prod(shape)), bool(zero.any()))
