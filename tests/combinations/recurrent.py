"""Give GRU, LSTM and RNN other sizes, directions and optional tensors that fit together.

Sizes follow from a few numbers: an LSTM, which has 4 gates, in 2 directions with a hidden size of 4
and 3 inputs has a WeightTensor of 1x2x16x3.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

from dmlconf.catalogue.desc import Desc, TensorDesc
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.tensors.datatypes import DataType

__all__ = ["is_recurrent", "with_other_networks"]

_GATES: Final = {"GRU": 3, "LSTM": 4, "RNN": 1}
"""How many gates an operator has."""

_ACTIVATIONS: Final = {"GRU": 2, "LSTM": 3, "RNN": 1}
"""How many activations an operator has in each direction."""

_HIDDEN: Final = {
    "prime": (3, 5),
    "tile - 1": (15,),
    "tile": (16,),
    "tile + 1": (17,),
}
"""Sizes of the hidden state to try, by class of the last size."""


@dataclass(frozen=True)
class _Network:
    """The numbers from which all sizes follow.

    Attributes:
        steps: the steps of a sequence.
        batches: the sequences.
        inputs: the elements of an input at each step.
        hidden: the elements of the hidden state.
        direction: the value of Direction.
    """

    steps: int
    batches: int
    inputs: int
    hidden: int
    direction: str

    @property
    def directions(self) -> int:
        return 2 if self.direction == "BIDIRECTIONAL" else 1


def is_recurrent(operator: Operator) -> bool:
    return operator.name in _GATES


def with_other_networks(operator: Operator, desc: Desc, name: str, value: str) -> Iterator[Desc]:
    """Yield descs in which the parameter `name` may have `value`; the caller checks them."""
    network = _read(desc)
    tensors = {each.name for each in operator.of_kind(FieldKind.INPUT, FieldKind.OUTPUT)}
    if name in tensors:
        yield _with_sizes(operator, desc, network, {name})
    elif name == "Direction":
        yield _with_sizes(operator, desc, replace(network, direction=value), set())
    elif name == "last size":
        for hidden in _HIDDEN.get(value, ()):
            yield _with_sizes(operator, desc, replace(network, hidden=hidden), set())
        inputs = {"1": 1, "large": 1031}.get(value)
        if inputs is not None:
            yield _with_sizes(operator, desc, replace(network, inputs=inputs, hidden=1), set())
    else:
        added = {name.removeprefix("layout of ")} & tensors
        yield _with_sizes(operator, desc, network, added)
        both = replace(network, direction="BIDIRECTIONAL")
        for each in (network, both):
            several = replace(each, batches=max(3, each.batches), steps=max(2, each.steps))
            yield _with_sizes(operator, desc, several, added)
            large = replace(several, inputs=max(2, each.inputs), hidden=max(3, each.hidden))
            yield _with_sizes(operator, desc, large, added)


def _read(desc: Desc) -> _Network:
    _, steps, batches, inputs = desc["InputTensor"].Sizes
    return _Network(steps, batches, inputs, desc["RecurrenceTensor"].Sizes[3], desc["Direction"])


def _with_sizes(operator: Operator, desc: Desc, network: _Network, added: set[str]) -> Desc:
    gates, count = _GATES[operator.name], network.directions
    state = (1, count, network.batches, network.hidden)
    sizes = {
        "InputTensor": (1, network.steps, network.batches, network.inputs),
        "WeightTensor": (1, count, gates * network.hidden, network.inputs),
        "RecurrenceTensor": (1, count, gates * network.hidden, network.hidden),
        "BiasTensor": (1, 1, count, 2 * gates * network.hidden),
        "HiddenInitTensor": state,
        "CellMemInitTensor": state,
        "SequenceLengthsTensor": (1, 1, 1, network.batches),
        "PeepholeTensor": (1, 1, count, 3 * network.hidden),
        "OutputSequenceTensor": (network.steps, *state[1:]),
        "OutputSingleTensor": state,
        "OutputCellSingleTensor": state,
    }
    changed: dict[str, Any] = {**desc, "Direction": network.direction}
    for name, shape in sizes.items():
        tensor = desc.get(name)
        if isinstance(tensor, TensorDesc):
            changed[name] = replace(tensor, Sizes=shape)
        elif name in added:
            lengths = name == "SequenceLengthsTensor"
            data_type = DataType.UINT32 if lengths else desc["InputTensor"].DataType
            changed[name] = TensorDesc(data_type, shape)
    each = _ACTIVATIONS[operator.name]
    activations = desc["ActivationDescs"]
    changed["ActivationDescs"] = (*activations[:each], *activations[-each:])[: each * count]
    changed["ActivationDescCount"] = each * count
    return changed
