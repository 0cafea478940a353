"""References to the tensors of a desc: `ATensor`, or `InputTensors[2]` for one of an array."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["TensorRef"]


@dataclass(frozen=True, slots=True)
class TensorRef:
    """A tensor of a desc: a field, and an index if the field is an array."""

    field: str
    index: int | None = None

    @classmethod
    def of(cls, name: str) -> TensorRef:
        """Parse a name such as `InputTensors[2]`.

        Raises:
            ValueError: what follows `[` is not a number and `]`.
        """
        field, bracket, rest = name.partition("[")
        if not bracket:
            return cls(field)
        if not rest.endswith("]"):
            raise ValueError(f"{name!r} has no ] at its end")
        return cls(field, int(rest[:-1]))

    def __str__(self) -> str:
        return self.field if self.index is None else f"{self.field}[{self.index}]"

    def read(self, desc: Mapping[str, Any]) -> Any:
        """Return what a desc, or another mapping with the same keys, has for the tensor.

        Raises:
            LookupError: the mapping lacks the field, or the array has no such index.
            TypeError: there is an index, but no array.
        """
        value = desc[self.field]
        return value if self.index is None else value[self.index]

    def replaced(self, desc: Mapping[str, Any], tensor: Any) -> dict[str, Any]:
        """Return a desc with another tensor instead of this one."""
        if self.index is None:
            return {**desc, self.field: tensor}
        items = list(desc[self.field])
        items[self.index] = tensor
        return {**desc, self.field: type(desc[self.field])(items)}
