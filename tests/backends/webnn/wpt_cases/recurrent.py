"""Convert WebNN's tests of recurrent layers, and of their single steps (cells), into cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array
from tests.backends.stated_descs import recurrent_fields
from tests.backends.webnn.wpt_cases.building import Conversion, case_of
from tests.backends.webnn.wpt_cases.wpt_tests import WptTest

__all__ = ["CONVERSIONS"]

_GATES: Final = {"GRU": "zrn", "LSTM": "iofg"}
"""The order of the gates in DirectML, in the letters of WebNN's layouts."""

_ACTIVATIONS: Final = {"GRU": ("sigmoid", "tanh"), "LSTM": ("sigmoid", "tanh", "tanh")}
_DIRECTIONS: Final = {"forward": "FORWARD", "backward": "BACKWARD", "both": "BIDIRECTIONAL"}


def _recurrent(test: WptTest) -> Case:
    operator = "GRU" if test.operation.startswith("gru") else "LSTM"
    is_cell = test.operation.endswith("Cell")
    direction = _DIRECTIONS[test.arguments.get("direction", "forward")]
    # `sizes` reads any list; this one has names in place of numbers.
    named = test.sizes("activations", _ACTIVATIONS[operator])  # type: ignore[arg-type]
    activations = named * (2 if direction == "BIDIRECTIONAL" else 1)
    fields = recurrent_fields(
        operator,
        [f"ACTIVATION_{str(each).upper()}" for each in activations],
        direction,
        linear_before_reset=bool(test.arguments.get("resetAfter", True)),
    )
    return case_of(
        test, operator, _inputs(test, operator, is_cell), _outputs(test, operator), **fields
    )


def _inputs(test: WptTest, operator: str, is_cell: bool) -> dict[str, Array | None]:
    gates = _GATES[operator]
    order = [str(test.arguments.get("layout", gates)).index(each) for each in gates]

    def of_directions(name: str) -> Array:
        """Return weights with a dimension for the directions, and the gates in DirectML's order."""
        array = test.input(name)
        array = array[np.newaxis] if is_cell else array
        size = array.shape[1] // len(gates)
        parts = [array[:, gate * size : (gate + 1) * size] for gate in order]
        return np.concatenate(parts, axis=1)

    weight, recurrence = of_directions("weight"), of_directions("recurrentWeight")
    zeros = np.zeros(weight.shape[:2], weight.dtype)
    names = ("bias", "recurrentBias")
    biases = [of_directions(n) if n in test.arguments else zeros for n in names]
    given = any(name in test.arguments for name in names)
    peephole = test.optional("peepholeWeight")
    if peephole is not None and not peephole.any():
        peephole = None  # Peepholes of 0 change nothing, and could not be translated back.
    tensor = test.input("input")
    inputs = {
        "InputTensor": tensor[np.newaxis] if is_cell else tensor,
        "WeightTensor": weight,
        "RecurrenceTensor": recurrence,
        "BiasTensor": np.concatenate(biases, axis=1)[np.newaxis] if given else None,
        "HiddenInitTensor": _first_given(test, ("initialHiddenState", "hiddenState")),
        "CellMemInitTensor": _first_given(test, ("initialCellState", "cellState")),
        "PeepholeTensor": None if peephole is None else peephole.reshape(1, len(weight), -1),
    }
    fitting = {name: each for name, each in inputs.items() if each is not None}
    return {name: each.reshape(_four_dimensions(each.shape)) for name, each in fitting.items()}


def _four_dimensions(sizes: Sequence[int]) -> tuple[int, ...]:
    return (*(1,) * (4 - len(sizes)), *sizes)


def _first_given(test: WptTest, names: Sequence[str]) -> Array | None:
    return next((test.input(name) for name in names if name in test.arguments), None)


def _outputs(test: WptTest, operator: str) -> dict[str, Array]:
    names = ["OutputSingleTensor"]
    if operator == "LSTM":
        names.append("OutputCellSingleTensor")
    names.append("OutputSequenceTensor")
    arrays = [each.array() for each in test.outputs]
    return {
        n: each.reshape(_four_dimensions(each.shape))
        for n, each in zip(names, arrays, strict=False)
    }


CONVERSIONS: Final[Mapping[str, Conversion]] = dict.fromkeys(
    ("gru", "gruCell", "lstm", "lstmCell"), _recurrent
)
