"""The backend `faulty:FAULT[,OPTION=VALUE]...`: the reference with a fault or a level.

    on=PART                 only cases whose identifier contains PART have the fault
    where=CONDITION         only cases that meet the condition have it, as for `--where`
    by=FACTOR               what the fault `scaled` multiplies by (default 1.1)
    seconds=SECONDS         how long the fault `slow` takes for each case (default 0.5)
    metacommands=off, half=on, compile=graph, only=MODE     see `dmlconf.backends.faulty.modes`

`faulty:level=LEVEL` has no fault, and supports only what the catalogue lists for that level.
"""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Final

import numpy as np

import dmlconf
from dmlconf.backends.errors import OptionError
from dmlconf.backends.faulty.levels import capabilities_of, run_at
from dmlconf.backends.faulty.modes import DEFAULT_MODES, MODE_WORDS, SWITCHES, VARIANTS, Modes
from dmlconf.backends.numpy.backend import HIGHEST_LEVEL, run_case
from dmlconf.backends.options import choose, split_options, variants_of
from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Capabilities,
    Declined,
    Environment,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.cases.conditions import read_condition, unknown_names
from dmlconf.cases.facts import names_of
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.model import FEATURE_LEVELS, FeatureLevel
from dmlconf.expressions import Expression, ExpressionError
from dmlconf.tensors.datatypes import Array, DataType

__all__ = [
    "FAULTS",
    "OPTION_WORDS",
    "FaultyBackend",
    "LevelBackend",
    "create",
    "last_negated",
    "negated",
    "scaled",
    "variants",
]

NAME: Final = "faulty"
_SLOW_SECONDS: Final = 0.5
_FACTOR: Final = 1.1
_FIRST_LEVEL: Final = Capabilities(
    FEATURE_LEVELS[0], frozenset({DataType.FLOAT32, DataType.FLOAT16, DataType.UINT32})
)


def _zeros(case: Case) -> Outcome:
    if isinstance(case.expectation, ExpectedRejection):
        return Outputs({})  # Its tensors may need too much memory.
    return Outputs(
        {name: np.zeros(t.Sizes, t.DataType.dtype) for name, t in case.outputs().items()}
    )


def _changed(case: Case, change: Callable[[Array, DataType], Array]) -> Outcome:
    outcome = run_case(case)
    if not isinstance(outcome, Outputs):
        return outcome
    types = {name: tensor.DataType for name, tensor in case.outputs().items()}
    arrays = {name: change(array, types[name]) for name, array in outcome.arrays.items()}
    return replace(outcome, arrays=arrays)


def _negated(case: Case) -> Outcome:
    return _changed(case, negated)


def _scaled(case: Case, by: float = _FACTOR) -> Outcome:
    return _changed(case, partial(scaled, by=by))


def _last_element(case: Case) -> Outcome:
    return _changed(case, last_negated)


_STEADY_RUNS: Final = 3
"""The fault `unsteady` spares one in this many runs of affected cases."""

_runs = count()


def _unsteady(case: Case) -> Outcome:
    return _negated(case) if next(_runs) % _STEADY_RUNS else run_case(case)


def _wrong_type(case: Case) -> Outcome:
    outcome = run_case(case)
    if not isinstance(outcome, Outputs):
        return outcome
    other = {
        name: np.float64 if a.dtype != np.float64 else np.float32
        for name, a in outcome.arrays.items()
    }
    return Outputs({name: array.astype(other[name]) for name, array in outcome.arrays.items()})


def _wrong_sizes(case: Case) -> Outcome:
    outcome = run_case(case)
    if not isinstance(outcome, Outputs):
        return outcome
    return Outputs({name: array[np.newaxis] for name, array in outcome.arrays.items()})


def _no_output(case: Case) -> Outcome:
    return Outputs({})


def _rejects(case: Case) -> Outcome:
    return Rejection("CreateOperator", "E_INVALIDARG")


def _declines(case: Case) -> Outcome:
    return Declined("the backend has no counterpart of this operator")


def _crash(case: Case) -> Outcome:
    print(f"faulty: about to crash on {case.identifier}", file=sys.stderr, flush=True)
    os.abort()


def _hang(case: Case) -> Outcome:
    while True:
        time.sleep(3600)


def _slow(case: Case, seconds: float = _SLOW_SECONDS) -> Outcome:
    time.sleep(seconds)
    return run_case(case)


def _flaky(case: Case, met: set[str] | None = None) -> Outcome:
    """Return zeros for a case that is not yet in `met`, and right outputs otherwise."""
    if met is None or case.identifier in met:
        return run_case(case)
    met.add(case.identifier)
    return _zeros(case)


def _out_of_memory(case: Case) -> Outcome:
    np.ones(1 << 60, np.uint8)
    return Outputs({})


def _device_removed(case: Case) -> Outcome:
    return Breakdown(BreakdownKind.DEVICE_REMOVED, "DXGI_ERROR_DEVICE_REMOVED after dispatch")


def _first_level(case: Case) -> Outcome:
    return run_at(FEATURE_LEVELS[0], case)


def _error(case: Case) -> Outcome:
    raise RuntimeError("a mistake in the backend")


FAULTS: Final[Mapping[str, Callable[[Case], Outcome]]] = {
    "zeros": _zeros,
    "negated": _negated,
    "scaled": _scaled,
    "last-element": _last_element,
    "unsteady": _unsteady,
    "wrong-type": _wrong_type,
    "wrong-sizes": _wrong_sizes,
    "no-output": _no_output,
    "rejects": _rejects,
    "declines": _declines,
    "crash": _crash,
    "hang": _hang,
    "slow": _slow,
    "flaky": _flaky,
    "out-of-memory": _out_of_memory,
    "device-removed": _device_removed,
    "error": _error,
    "first-level": _first_level,
}


@dataclass(frozen=True, slots=True)
class FaultyBackend:
    """The reference with one fault; the module's docstring explains the options.

    Attributes:
        fault: a name in `FAULTS`.
        part: the option `on`.
        factor: the option `by`.
        name: the name under which the backend was chosen: `faulty`, or `miniature` as formerly.
    """

    fault: str
    part: str = ""
    where: Expression | None = None
    factor: float = _FACTOR
    seconds: float = _SLOW_SECONDS
    modes: Modes = DEFAULT_MODES
    name: str = NAME
    _met: set[str] = field(default_factory=set, init=False, repr=False, compare=False)

    def environment(self) -> Environment:
        """Return an environment whose adapter is the fault's name."""
        details = self.modes.details()
        return Environment(self.name, dmlconf.__version__, adapter=self.fault, details=details)

    def capabilities(self) -> Capabilities:
        """Return what the backend claims to run: everything, but with `first-level` less."""
        if self.fault == "first-level":
            return _FIRST_LEVEL
        half = self.modes.half
        return Capabilities(HIGHEST_LEVEL, frozenset(DataType), half_precision=half)

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield one outcome for each case; `crash` ends the process, and `hang` never yields.

        Raises:
            RuntimeError: the fault is `error`.
            MemoryError: the fault is `out-of-memory`.
        """
        run_faulty = FAULTS[self.fault]
        if run_faulty is _scaled:
            run_faulty = partial(_scaled, by=self.factor)
        elif run_faulty is _slow:
            run_faulty = partial(_slow, seconds=self.seconds)
        elif run_faulty is _flaky:
            run_faulty = partial(_flaky, met=self._met)
        present = self.modes.fault_present(len(cases))
        for case in cases:
            yield run_faulty(case) if present and self._meets(case) else run_case(case)

    def _meets(self, case: Case) -> bool:
        if self.part not in case.identifier:
            return False
        return self.where is None or self.where.holds(names_of(case, self.where))

    def close(self) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class LevelBackend:
    """The reference, limited to what the catalogue lists for one feature level."""

    level: FeatureLevel
    name: str = NAME

    def environment(self) -> Environment:
        """Return an environment whose adapter names the level."""
        return Environment(self.name, dmlconf.__version__, adapter=f"level {self.level}")

    def capabilities(self) -> Capabilities:
        """Return the level and its data types."""
        return capabilities_of(self.level)

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield the outcome of each case: a rejection if the level lacks a part of it."""
        return (run_at(self.level, case) for case in cases)

    def close(self) -> None:
        """Do nothing."""


_OF_FAULT: Final = {"scaled": "by", "slow": "seconds"}
"""Options that belong to a single fault."""

OPTION_WORDS: Final = (
    *FAULTS,
    "on=",
    "where=",
    "by=",
    "seconds=",
    *MODE_WORDS,
    *(f"level={level}" for level in FEATURE_LEVELS),
)
"""Words that may follow `faulty:`, for completion."""


def create(argument: str, name: str = NAME) -> FaultyBackend | LevelBackend:
    """Create the backend from the options after `faulty:`.

    Args:
        name: the name before the colon.

    Raises:
        BackendError: the options do not name one fault or one level, or an option is wrong.
    """
    words, options = split_options(argument)
    if not words and options.keys() == {"level"}:
        levels = {str(level): level for level in FEATURE_LEVELS}
        return LevelBackend(levels[choose("feature level", options["level"], levels)], name)
    if len(words) != 1:
        faults = ", ".join(FAULTS)
        several = f", not {' and '.join(words)}" if words else ""
        raise OptionError(
            f"name one fault{several}, such as faulty:zeros (one of {faults}), "
            "or a feature level, such as faulty:level=3_1"
        )
    fault = choose("fault", words[0], FAULTS)
    for option in options:
        known = [*filter(None, ["on", "where", *SWITCHES, _OF_FAULT.get(fault)])]
        choose(f"option of the backend faulty:{fault}", option, known)
    return FaultyBackend(
        fault,
        options.get("on", ""),
        _condition(options.get("where")),
        _number(options.get("by"), _FACTOR, "a factor; write a number, such as by=1.1"),
        _number(
            options.get("seconds"),
            _SLOW_SECONDS,
            "a number of seconds; write it as seconds=0.1",
            least=0,
        ),
        Modes.of(options),
        name,
    )


def variants(argument: str) -> dict[str, str]:
    """Return the options of each variant of `OPTION=both`, by a key such as `metacommands=off`."""
    return variants_of(argument, VARIANTS)


def _condition(text: str | None) -> Expression | None:
    if text is None:
        return None
    try:
        condition = read_condition(text)
    except ExpressionError as error:
        raise OptionError(f"where={text} is not a condition: {error}") from error
    for unknown in unknown_names(condition):
        raise OptionError(f"where={text}: no operator has {unknown.name}; {unknown.hint}")
    return condition


def _number(text: str | None, otherwise: float, expected: str, least: float = -math.inf) -> float:
    if text is None:
        return otherwise
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or number < least:
        raise OptionError(f"{text} is not {expected}")
    return number


def negated(array: Array, data_type: DataType) -> Array:
    """Return each element with its sign flipped; integers wrap: 1 becomes 255 in UINT8."""
    if data_type.is_float:
        return -array
    wrapped: Array = np.negative(array)
    return _nibbles(wrapped, data_type) if data_type.bits == 4 else wrapped


def last_negated(array: Array, data_type: DataType) -> Array:
    """Return a copy whose last element in row-major order is negated, as by `negated`."""
    changed = np.array(array, order="C")  # In another order, `reshape` would copy.
    changed.reshape(-1)[-1:] = negated(changed.reshape(-1)[-1:], data_type)
    return changed


def scaled(array: Array, data_type: DataType, by: float) -> Array:
    """Return each element times a factor, in the same dtype; integers are rounded and saturate."""
    with np.errstate(over="ignore"):
        product = array.astype(np.float64) * by
        if data_type.is_float:
            return product.astype(array.dtype)
    # FLOAT64 lacks the maximum of INT64 and that of UINT64: use the next lower number that it has.
    highest = np.float64(data_type.maximum)
    if int(highest) > data_type.maximum:
        highest = np.nextafter(highest, 0)
    rounded: Array = np.clip(np.rint(product), data_type.minimum, highest).astype(array.dtype)
    return rounded


def _nibbles(array: Array, data_type: DataType) -> Array:
    """Return 4-bit integers, stored one per byte, wrapped to their range."""
    low: Array = array & 0xF
    return np.where(low > data_type.maximum, low - 16, low).astype(array.dtype)
