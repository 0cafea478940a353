"""Read the defects of `planted.yaml`, and run the reference with one of them planted in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import dmlconf
from dmlconf.backends.faulty.backend import FAULTS
from dmlconf.backends.numpy.backend import HIGHEST_LEVEL, run_case
from dmlconf.backends.protocol import Capabilities, Environment, Outcome
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.desc import TensorDesc, tensors_of
from dmlconf.catalogue.model import FieldKind
from dmlconf.documents.reader import read_document
from dmlconf.tensors.datatypes import DataType
from dmlconf.tensors.layout import packed_strides

__all__ = ["DEFECTS", "Defect", "PlantedBackend"]


@dataclass(frozen=True)
class Defect:
    """A planted defect; the head of `planted.yaml` says what its members mean."""

    name: str
    operators: tuple[str, ...]
    fault: str
    when: str
    named: tuple[str, ...]


def _packed(tensor: TensorDesc) -> bool:
    if tensor.Strides is None:
        return True
    needed = zip(tensor.Sizes, tensor.Strides, packed_strides(tensor.Sizes), strict=True)
    return all(size == 1 or stride == other for size, stride, other in needed)


def _read() -> Iterator[Defect]:
    for entry in read_document(Path(__file__).with_name("planted.yaml")).data:
        lists = {key: tuple(entry[key]) for key in ("operators", "named")}
        yield Defect(**{**entry, **lists})


DEFECTS: Final = tuple(_read())


class PlantedBackend:
    """The reference, wrong where a defect's condition holds."""

    def __init__(self, defect: Defect) -> None:
        self._fault = FAULTS[defect.fault] if defect.fault != "crash" else _crash
        self._when = compile(defect.when, defect.name, "eval")

    def meets(self, case: Case) -> bool:
        tensors = [t for _, _, t in tensors_of(case.entry, case.desc)]
        outputs = [t for _, _, t in tensors_of(case.entry, case.desc, FieldKind.OUTPUT)]
        names: dict[str, Any] = {
            "d": case.desc,
            "t": tensors,
            "o": outputs,
            "case": case,
            "packed": _packed,
        }
        return bool(eval(self._when, names))

    def environment(self) -> Environment:
        return Environment("planted", dmlconf.__version__)

    def capabilities(self) -> Capabilities:
        return Capabilities(HIGHEST_LEVEL, frozenset(DataType))

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        for case in cases:
            valid = not isinstance(case.expectation, ExpectedRejection)
            yield self._fault(case) if valid and self.meets(case) else run_case(case)

    def close(self) -> None:
        pass


def _crash(case: Case) -> Outcome:
    raise RuntimeError("DXGI_ERROR_DEVICE_HUNG (0x887A0006)")
