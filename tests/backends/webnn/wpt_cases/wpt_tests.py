"""Read the tests of WebNN's operators from a checkout of web-platform-tests.

Chromium evaluates the test files. `collect.js` replaces the function that runs a test by one that
records it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from dmlconf.backends.webnn.devtools import Browser
from dmlconf.tensors.datatypes import Array, DataType
from tests.backends.stated_cases import NoCaseError

__all__ = ["VARIABLE", "Tensor", "Tolerance", "WptTest", "commit_of", "wpt_tests"]

VARIABLE: Final = "DMLCONF_WPT"
"""The environment variable that names the checkout."""

_COLLECT: Final = Path(__file__).with_name("collect.js")
_FOUR_BITS: Final = 4
_PAIR: Final = 2
_RECORDED: Final = "webnn_conformance_test"
"""The function that runs a test of operators."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far results may be from expected numbers, in "ULP" or as an absolute error ("ATOL")."""

    metric: str
    value: float

    def accepts(self, actual: Array, expected: Array) -> bool:
        """Return whether each element is near enough. NaN matches NaN, and -0 matches 0."""
        if self.metric == "ATOL":
            return bool(np.allclose(actual, expected, rtol=0, atol=self.value, equal_nan=True))
        if actual.dtype.kind != "f":
            distance = np.abs(actual.astype(object) - expected.astype(object))
        else:
            distance = np.abs(_ordinal(actual) - _ordinal(expected))
            distance[np.isnan(actual) & np.isnan(expected)] = 0
        return bool((distance <= self.value).all())


def _ordinal(array: Array) -> Array:
    """Return the ordinals of floating-point numbers: 0 has 0, and the next number above it 1."""
    bits = array.view(f"i{array.dtype.itemsize}").astype(np.int64)
    lowest = -(1 << (8 * array.dtype.itemsize - 1))
    return np.where(bits < 0, lowest - bits, bits)


def _packed(array: Array) -> Array:
    """Return numbers as WebNN keeps them in 4 bits: 17 becomes 1."""
    low = array & 0xF
    return np.where(low & 0x8, low - 0x10, low) if array.dtype == np.int8 else low


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a test; its elements are texts, or one text if all are equal."""

    type: str
    shape: tuple[int, ...]
    data: Sequence[str] | str
    constant: bool = False

    @property
    def data_type(self) -> DataType:
        return DataType(self.type.upper())

    def array(self) -> Array:
        read = float if self.data_type.is_float else int
        several = [self.data] if isinstance(self.data, str) else self.data
        numbers = [read(each) for each in several]
        with np.errstate(over="ignore"):
            array = np.array(numbers, self.data_type.dtype)
        if isinstance(self.data, str):
            return np.broadcast_to(array[0], self.shape)
        return array.reshape(self.shape)


@dataclass(frozen=True, slots=True)
class WptTest:
    """A test of one operator, or of two.

    Attributes:
        operation: the name of the operator, or of the first of two; of more than two all names.
        arguments: arguments and options by name; for a tensor, its name in `tensors`.
        tolerance: how far results may differ; None for a test of more than two operators.
        then: the test of a second operator, whose `input` is the output of the first. The numbers
            of this tensor are unknown, and are 0 here.
    """

    file: str
    name: str
    operation: str
    arguments: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    outputs: Sequence[Tensor]
    tolerance: Tolerance | None
    then: WptTest | None = None

    def input(self, argument: str) -> Array:
        """Return an input; raise NoCaseError if it is absent."""
        array = self.optional(argument)
        if array is None:
            raise NoCaseError("an input that is absent")
        return array

    def optional(self, argument: str) -> Array | None:
        name = self.arguments.get(argument)
        if name is None:
            return None
        array = self.tensors[name].array()
        if self.tensors[name].data_type.bits == _FOUR_BITS:
            return _packed(array)
        return array

    def is_constant(self, argument: str) -> bool:
        name = self.arguments.get(argument)
        return isinstance(name, str) and name in self.tensors and self.tensors[name].constant

    def type_of(self, argument: str) -> DataType:
        return self.tensors[self.arguments[argument]].data_type

    def output(self, index: int = 0) -> Array:
        return self.outputs[index].array()

    def number(self, argument: str, default: float) -> float:
        return float(self.arguments.get(argument, default))

    def axis(self, argument: str = "axis", default: int = 0) -> int:
        return int(self.arguments.get(argument, default))

    def sizes(self, argument: str, default: Sequence[int]) -> tuple[int, ...]:
        return tuple(self.arguments.get(argument, default))


def commit_of(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def wpt_tests(checkout: Path, browser: Browser) -> Iterator[WptTest]:
    collect = _COLLECT.read_text("utf-8")
    utilities = (checkout / "webnn" / "resources" / "utils.js").read_text("utf-8")
    for path in sorted((checkout / "webnn" / "conformance_tests").glob("*.https.any.js")):
        text = path.read_text("utf-8")
        if _RECORDED in text:  # The other files test no operators, but MLTensor and the like.
            texts = f"{json.dumps(utilities)}, {json.dumps(text)}"
            for test in json.loads(browser.evaluate(f"({collect})({texts})")):
                yield _wpt_test(path.name.partition(".")[0], test)


def _wpt_test(file: str, test: Mapping[str, Any]) -> WptTest:
    operators = test["operators"]
    tolerance = test["tolerance"]
    outputs = {name: _tensor(each) for name, each in test["outputs"].items()}
    tensors = {name: _tensor(each) for name, each in test["inputs"].items()}
    whole = WptTest(
        file=file,
        name=test["name"],
        operation=" + ".join(each["name"] for each in operators),
        arguments=_arguments(operators[-1]),
        tensors=tensors,
        outputs=[outputs[name] for name in _outputs(operators[-1]) if name in outputs],
        tolerance=tolerance and Tolerance(tolerance["metricType"], float(tolerance["value"])),
    )
    if len(operators) != _PAIR:
        return whole
    [output], [between] = whole.outputs, _outputs(operators[0])
    unknown = Tensor(output.type, output.shape, "0")
    first, second = (each["name"] for each in operators)
    then = replace(whole, operation=second, tensors={**tensors, between: unknown})
    return replace(
        whole,
        operation=first,
        arguments=_arguments(operators[0]),
        outputs=[unknown],
        then=then,
    )


def _arguments(operator: Mapping[str, Any]) -> Mapping[str, Any]:
    arguments: dict[str, Any] = {}
    for argument in filter(None, operator["arguments"]):
        for name, value in argument.items():
            arguments |= value if name == "options" else {name: value}
    return {name: _value(value) for name, value in arguments.items()}


def _outputs(operator: Mapping[str, Any]) -> Sequence[str]:
    named = operator["outputs"]
    return [named] if isinstance(named, str) else named


def _tensor(data: Mapping[str, Any]) -> Tensor:
    return Tensor(data["type"], tuple(data["shape"]), data["data"], data["constant"])


def _value(value: Any) -> Any:
    return float(value["number"]) if isinstance(value, dict) else value
