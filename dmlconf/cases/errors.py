"""Errors in the entry of a case, and a collector that reports all at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dmlconf.catalogue.tensor_ref import TensorRef

__all__ = ["CaseError", "CaseErrors", "desc_location"]


class CaseError(ValueError):
    """An error in the entry of a case or a matrix.

    Attributes:
        where: keys and indices that lead from the entry to the error.
        hint: what to do, or None.
        others: further errors of the same case.
    """

    def __init__(
        self,
        where: Sequence[str | int],
        message: str,
        hint: str | None = None,
        others: Sequence[CaseError] = (),
    ) -> None:
        self.where, self.message, self.hint = tuple(where), message, hint
        self.others = tuple(others)
        super().__init__(message)

    def all(self) -> list[CaseError]:
        """Return this error and, recursively, all `others`."""
        return [self, *(error for other in self.others for error in other.all())]


def desc_location(field: str) -> tuple[str | int, ...]:
    """Return the keys that lead to a field in an entry.

    `InputTensors[0]` has the keys `desc`, `InputTensors`, 0; an empty name has `desc`.
    """
    if not field:
        return ("desc",)
    tensor = TensorRef.of(field)
    where = ("desc", tensor.field)
    return where if tensor.index is None else (*where, tensor.index)


class CaseErrors:
    """Collects the errors of a case."""

    def __init__(self) -> None:
        self._errors: list[CaseError] = []

    def __len__(self) -> int:
        return len(self._errors)

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep a `CaseError` that the block raises, and continue after the block."""
        try:
            yield
        except CaseError as error:
            self._errors.append(error)

    def add(self, error: CaseError) -> None:
        """Keep an error."""
        self._errors.append(error)

    def raise_any(self) -> None:
        """Raise the first error, if any, with the others in its `others`."""
        if self._errors:
            first, *others = self._errors
            raise CaseError(first.where, first.message, first.hint, [*first.others, *others])

    def raise_causes(self, consequence: type[CaseError]) -> None:
        """Raise as `raise_any` does, without the errors of the class `consequence`.

        If all errors are of that class, raise the first.
        """
        causes = [error for error in self._errors if not isinstance(error, consequence)]
        if self._errors and not causes:
            raise self._errors[0]
        self._errors = causes
        self.raise_any()
