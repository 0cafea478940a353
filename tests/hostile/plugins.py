"""A backend that breaks its protocol at random: any value in its outcomes may be wrong.

An environment variable names a file with a seed. The seed and the case decide what the backend
returns.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import (
    Backend,
    Breakdown,
    BreakdownKind,
    Capabilities,
    Environment,
    Fault,
    FaultKind,
    Outputs,
    Rejection,
)
from dmlconf.cases.model import Case
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.tensors.datatypes import DataType
from tests.backends.installing import install_plugin

__all__ = ["CASES", "SEED_FILE", "Hostile", "create", "install"]

SEED_FILE: Final = "DMLCONF_HOSTILE_SEED"

CASES: Final = """
operator: TILE
cases:
  - matrix: {Number: "=range(12)"}
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 2]}
"""


class Raising:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no attributes")

    def __iter__(self) -> Iterator[Any]:
        raise RuntimeError("no items")

    def __len__(self) -> int:
        raise RuntimeError("no length")

    def __hash__(self) -> int:
        raise RuntimeError("no hash")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("equal to nothing")

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__

    def __float__(self) -> float:
        raise RuntimeError("no number")

    __int__ = __index__ = __float__

    def __reduce__(self) -> Any:
        raise RuntimeError("not pickled")


class OddText(str):
    """A string that raises in some uses, and ends the process that unpickles it."""

    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no text")

    def __getitem__(self, key: Any) -> str:
        return OddText("x" * 9)

    def encode(self, *_: Any) -> Any:
        return Raising()

    def __reduce__(self) -> Any:
        return _end, ()


class OddArray(np.ndarray):
    """An array that raises when it is copied, and ends the process that unpickles it."""

    def __array_finalize__(self, source: Any) -> None:
        if source is not None and type(source) is not OddArray:
            return
        raise RuntimeError("not finalized")

    def __reduce__(self) -> Any:
        return _end, ()


class Endless(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        return np.zeros(1)

    def __len__(self) -> int:
        return -1

    def __iter__(self) -> Iterator[str]:
        while True:
            yield "OutputTensor"


def _end() -> None:
    os._exit(99)


def _endless() -> Iterator[Any]:
    while True:
        yield "x"


def _circle() -> list[Any]:
    circle: list[Any] = []
    circle.append(circle)
    return circle


def _nest(depth: int) -> list[Any]:
    nest: list[Any] = []
    for _ in range(depth):
        nest = [nest]
    return nest


_RIGHT: Final = np.array([1, 2, 1, 2], np.float32)

_VALUES: Final[tuple[Callable[[], Any], ...]] = (
    lambda: None,
    lambda: 0,
    lambda: -1,
    lambda: 10**400,
    lambda: True,
    lambda: math.nan,
    lambda: math.inf,
    lambda: -1e308,
    lambda: 1j,
    lambda: b"bytes",
    lambda: "",
    lambda: "OutputTensor",
    lambda: "\x1b[31m\x00\u202e\ud800]]>",
    lambda: "x" * 5_000_000,
    dict,
    list,
    lambda: (),
    lambda: {"OutputTensor": None},
    lambda: {None: _RIGHT},
    lambda: [Raising()],
    lambda: {"a": Raising()},
    lambda: Raising(),
    lambda: Raising,
    lambda: OddText("text"),
    lambda: Endless(),
    _endless,
    _circle,
    lambda: _nest(5_000),
    lambda: object(),
    lambda: Outputs,
    lambda: FaultKind.INPUT,
    lambda: DataType.FLOAT32,
    lambda: BreakdownKind.HANG,
    lambda: FeatureLevel(6, 4),
    lambda: Fault(FaultKind.INPUT, "m", "OutputTensor", np.array([10**9])),
    lambda: Fault(FaultKind.INPUT, "m", "No", np.array([-1])),
    lambda: Fault("no kind", 5, 5, "x"),  # type: ignore[arg-type]  # Wrong on purpose.
    lambda: (Fault(FaultKind.MESSAGE, "\x1b[2J\nline"),) * 2_000,
    lambda: _RIGHT,
    lambda: _RIGHT.astype(np.float64),
    lambda: _RIGHT.astype(">f4"),
    lambda: _RIGHT[::-1],
    lambda: _RIGHT.reshape(2, 2),
    lambda: _RIGHT[:3],
    lambda: np.float32(1),
    lambda: np.array(1.0),
    lambda: np.zeros((0, 4), np.float32),
    lambda: np.zeros(4, object),
    lambda: np.zeros(4, "M8[s]"),
    lambda: np.zeros(4, [("a", "f4")]),
    lambda: np.zeros(4, "U3"),
    lambda: np.zeros(4, np.longdouble),
    lambda: np.zeros(4, np.complex64),
    lambda: np.ma.masked_less(_RIGHT, 2),
    lambda: np.broadcast_to(np.float32(1), (1 << 40,)),
    lambda: np.broadcast_to(np.float32(1), (1 << 29,)),
    lambda: _RIGHT.view(OddArray),
    lambda: np.zeros((1,) * 32, np.float32),
    lambda: memoryview(b"1234"),
    lambda: {"OutputTensor": _RIGHT, "\x1b[31mOther": _RIGHT},
    lambda: {f"Output{i}": _RIGHT for i in range(5_000)},
    lambda: Outputs({"OutputTensor": _RIGHT}),
    lambda: Rejection("stage", "E_FAIL", ("c",) * 5_000),
    lambda: Breakdown(BreakdownKind.CRASH, "\x1b[2J" * 10_000, "d" * 3_000_000),
)

_BASES: Final[tuple[Callable[[], Any], ...]] = (
    lambda: Outputs({"OutputTensor": _RIGHT}, 0.1),
    lambda: Outputs({"OutputTensor": _RIGHT}, 0.1, (Fault(FaultKind.INPUT, "message"),), (0.1,)),
    lambda: Rejection("CreateOperator", "E_INVALIDARG", ("a",), 0.1),
    lambda: Breakdown(BreakdownKind.ERROR, "message", "diagnostics", 0.1),
)


def _outcome(random: Random) -> Any:
    kind = random.random()
    if kind < 0.1:
        return random.choice(_VALUES)()
    outcome = random.choice(_BASES)()
    for _ in range(random.choice((1, 1, 2))):
        name = random.choice([field.name for field in fields(outcome)])
        value = random.choice(_VALUES)()
        if name in ("arrays", "samples") and random.random() < 0.7:
            value = {"OutputTensor": value}
        elif random.random() < 0.4:
            value = (value,)
        outcome = replace(outcome, **{name: value})
    return outcome


class Hostile:
    def __init__(self, seed: str) -> None:
        self._seed = seed
        self._random = Random(seed)

    def environment(self) -> Any:
        whole = Environment("hostile", "1")
        if self._random.random() < 0.88:
            return whole
        name = self._random.choice([field.name for field in fields(whole)])
        return replace(whole, **{name: self._random.choice(_VALUES)()})

    def capabilities(self) -> Any:
        whole = Capabilities(FeatureLevel(6, 4), frozenset(DataType))
        if self._random.random() < 0.88:
            return whole
        name = self._random.choice([field.name for field in fields(whole)])
        return replace(whole, **{name: self._random.choice(_VALUES)()})

    def run(self, cases: Sequence[Case]) -> Iterator[Any]:
        for case in cases:
            random = Random(f"{self._seed}:{case.identifier}")
            kind = random.random()
            if kind < 0.3:
                yield run_case(case)
            elif kind < 0.34:
                yield from [run_case(case)] * random.choice((0, 2, 50))
            elif kind < 0.4:
                self._misbehave(random)
                yield run_case(case)
            else:
                yield _outcome(random)

    def _misbehave(self, random: Random) -> None:
        """Print, raise an exception, close a standard stream, or end the process."""
        kind = random.randrange(6)
        if kind == 0:
            print('{"not": "yours"}' * random.choice((1, 1000)), flush=True)
        elif kind == 1:
            sys.stderr.write("\x1b[31mnoise\n" * random.choice((1, 100_000)))
        elif kind == 2:
            raise random.choice((ValueError, KeyError, MemoryError, StopIteration))(OddText("no"))
        elif kind == 3:
            raise random.choice((SystemExit, KeyboardInterrupt, GeneratorExit))
        elif kind == 4:
            os.close(random.choice((0, 1, 2)))
        else:
            os._exit(random.choice((0, 1, 3, 70)))

    def close(self) -> None:
        if self._random.random() < 0.1:
            raise RuntimeError("not closed")


def create(argument: str) -> Backend:
    return Hostile(Path(os.environ[SEED_FILE]).read_text("utf-8"))


def install(folder: Path) -> None:
    """Write into a folder a distribution that registers the backend `hostile`."""
    install_plugin(folder, "hostile", module=__name__)
