"""Programs: cases as lists of operators of a target such as ONNX."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["BOOL", "NotExpressibleError", "Program", "Step", "TensorType", "together"]

BOOL = "BOOL"
"""The data type of truth values, which DirectML lacks."""


class NotExpressibleError(Exception):
    """A target cannot express a case; the message says why."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of a program's input or output, which is always packed."""

    data_type: DataType
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of the target.

    Attributes:
        operation: the operator's name in the target's specification, such as `Conv`.
        inputs: names of tensors; an absent optional input has an empty name.
        attributes: numbers, text, sequences of these, or `DataType` and `BOOL`, by name.
        operands: the optional inputs by name for WebNN; empty for ONNX.
    """

    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    operands: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Program:
    """The steps, and the tensors that they read and write.

    Attributes:
        inputs: the case's inputs that steps may read, by name.
        constants: tensors of the program itself, by name.
        steps: each comes after the steps whose outputs it reads.
        owned: the inputs with DML_TENSOR_FLAG_OWNED_BY_DML, which never change.
    """

    inputs: Mapping[str, TensorType]
    outputs: Mapping[str, TensorType]
    constants: Mapping[str, Array]
    steps: tuple[Step, ...]
    owned: frozenset[str] = frozenset()

    @property
    def operations(self) -> tuple[str, ...]:
        """The names of the steps' operators, each once."""
        return tuple(dict.fromkeys(step.operation for step in self.steps))

    def used_inputs(self) -> dict[str, TensorType]:
        """Return the inputs on which an output depends, by name."""
        needed = set(self.outputs)
        for step in reversed(self.steps):
            if not needed.isdisjoint(step.outputs):
                needed.update(step.inputs, step.operands.values())
        return {name: each for name, each in self.inputs.items() if name in needed}

    def renamed(self, prefix: str) -> Program:
        """Return the program with a prefix before the name of every tensor."""

        def new(name: str) -> str:
            return prefix + name if name else name  # An absent input has no name.

        return Program(
            inputs={new(name): each for name, each in self.inputs.items()},
            outputs={new(name): each for name, each in self.outputs.items()},
            constants={new(name): each for name, each in self.constants.items()},
            steps=tuple(
                replace(
                    step,
                    inputs=tuple(map(new, step.inputs)),
                    outputs=tuple(map(new, step.outputs)),
                    operands={name: new(operand) for name, operand in step.operands.items()},
                )
                for step in self.steps
            ),
            owned=frozenset(map(new, self.owned)),
        )


def together(programs: Iterable[Program]) -> Program:
    """Return one program with the steps of all; no two may have a tensor of the same name."""
    every = list(programs)
    return Program(
        inputs={name: each for one in every for name, each in one.inputs.items()},
        outputs={name: each for one in every for name, each in one.outputs.items()},
        constants={name: each for one in every for name, each in one.constants.items()},
        steps=tuple(step for one in every for step in one.steps),
        owned=frozenset(name for one in every for name in one.owned),
    )
