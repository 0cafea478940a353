"""A program: the operators of a target that a case becomes, in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dmlconf.tensors.datatypes import Array, DataType

__all__ = ["BOOL", "NotExpressibleError", "Program", "Step", "TensorType"]

BOOL = "BOOL"
"""The type of truth values, which targets have and DirectML has not."""


class NotExpressibleError(Exception):
    """A target has no counterpart of a case; the message says of what."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """The type of a program's input or output.

    Attributes:
        data_type: of the elements.
        sizes: elements along each dimension. A program's tensors are packed.
    """

    data_type: DataType
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One operator of the target.

    Attributes:
        operation: its name in the target's specification, such as `Conv`.
        inputs: names of tensors; an empty one is an optional input that is absent.
        outputs: names of tensors.
        attributes: by name: numbers, text, sequences of these, or `DataType` and `BOOL` for types.
        operands: optional inputs by name, for targets that name them; others give places to all.
    """

    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    operands: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Program:
    """The steps, and the tensors that they begin and end with.

    Attributes:
        inputs: the case's inputs that steps may read, by name.
        outputs: the case's outputs by name.
        constants: data that belongs to the program itself, by name.
        steps: in an order in which each reads only what is there.
        owned: inputs that never change, as those with DML_TENSOR_FLAG_OWNED_BY_DML.
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
