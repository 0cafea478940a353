"""Read the planted defects of `defects.yaml`, each of which is a backend `faulty:...`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dmlconf.documents.reader import read_document

__all__ = ["DEFECTS", "Defect"]


@dataclass(frozen=True)
class Defect:
    """A planted defect; the head of `defects.yaml` says what its members mean."""

    name: str
    operators: tuple[str, ...]
    backend: str
    named: tuple[str, ...]
    culprit: str | None = None
    timeout: float = 60.0


def _read() -> Iterator[Defect]:
    for entry in read_document(Path(__file__).with_name("defects.yaml")).data:
        lists = {key: tuple(entry[key]) for key in ("operators", "named")}
        yield Defect(**{**entry, **lists})


DEFECTS: Final = tuple(_read())
