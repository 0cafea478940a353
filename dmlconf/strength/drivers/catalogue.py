"""Read the driver defects: what each changes, under which conditions, and its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any, Final

from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.documents.reader import read_document
from dmlconf.documents.schema import bundled_checker, schema_problems
from dmlconf.expressions import Namespace
from dmlconf.strength.drivers.computation import Arrays, Computation, Effect, Settings
from dmlconf.strength.drivers.conditions import Condition, condition
from dmlconf.strength.drivers.effects import EFFECTS
from dmlconf.strength.drivers.elements import merge
from dmlconf.strength.drivers.function_formulas import FUNCTION_FORMULAS
from dmlconf.strength.drivers.integer_formulas import INTEGER_FORMULAS, quantized
from dmlconf.strength.drivers.tensor_formulas import TENSOR_FORMULAS
from dmlconf.strength.drivers.window_formulas import WINDOW_FORMULAS
from dmlconf.tensors.datatypes import DataType

__all__ = [
    "BugReport",
    "DriverDefect",
    "bug_reports",
    "defect_files",
    "driver_defects",
    "size_defects",
]

_HERE: Final = Path(__file__).parent
_FORMULAS: Final[Mapping[str, Effect]] = {
    **FUNCTION_FORMULAS,
    **INTEGER_FORMULAS,
    **TENSOR_FORMULAS,
    **WINDOW_FORMULAS,
}
_SECOND: Final = "second_dispatch"


@dataclass(frozen=True, slots=True)
class BugReport:
    """A public report of wrong results.

    Attributes:
        name: the report's name in `reports.yaml`.
    """

    name: str
    product: str
    url: str
    title: str


@dataclass(frozen=True, slots=True)
class DriverDefect:
    """One defect that a driver may have.

    Attributes:
        operators: the operators that may have the defect.
        conditions: the defect's code runs if a case meets all of them.
        effect: the name of the effect, which changes outputs as `settings` say.
        report: the public report that the defect is rebuilt from, or None.
        plausible: how a kernel may come to have the defect; None if there is a report.
        survives: why no case catches the defect, by operator, where known.
    """

    name: str
    operators: tuple[str, ...]
    conditions: tuple[Condition, ...]
    effect: str
    settings: Settings
    report: BugReport | None
    plausible: str | None
    survives: Mapping[str, str]

    @property
    def in_second_dispatch(self) -> bool:
        """Whether the first dispatch is right, and the second has the effect."""
        return self.effect == _SECOND

    def met(self, names: Namespace) -> tuple[bool, ...]:
        """Return for each condition whether a case meets it, given its features."""
        return tuple(one.holds(names) for one in self.conditions)

    def inject(self, right: Computation) -> Arrays | None:
        """Return outputs of a kernel with the defect, of which some may be right.

        None, or no outputs, if the defect does not apply to the case.
        """
        return _injected(self.effect, self.settings, right)


def _injected(effect: str, settings: Settings, right: Computation) -> Arrays | None:
    if effect == "formula":
        return _FORMULAS[settings["name"]](right, settings)
    if effect != "partly":
        return _EFFECTS[effect](right, settings)
    [(whole, own)] = settings["effect"].items()
    other = _injected(whole, own, right)
    return None if other is None else merge(right, other, settings)


_EFFECTS: Final[Mapping[str, Effect]] = {**EFFECTS, "quantize": quantized}


@cache
def bug_reports() -> Mapping[str, BugReport]:
    """Return the public reports by name."""
    data = read_document(_HERE / "reports.yaml").data
    return {name: BugReport(name, **entry) for name, entry in data.items()}


def defect_files(folder: str = "defects") -> list[Path]:
    """Return the files of driver defects in a folder next to this module."""
    return sorted((_HERE / folder).glob("*.yaml"))


@cache
def driver_defects() -> tuple[DriverDefect, ...]:
    """Return the driver defects of the folder `defects`, in the order of files and entries.

    Raises:
        InvalidFilesError: a file does not fit `schemas/driver-defects.schema.json`.
    """
    return _defects(defect_files())


@cache
def size_defects() -> tuple[DriverDefect, ...]:
    """Return the driver defects of the folder `sizes`, which are tried on cases of models.

    Raises:
        InvalidFilesError: a file does not fit `schemas/driver-defects.schema.json`.
    """
    return _defects(defect_files("sizes"))


def _defects(paths: Sequence[Path]) -> tuple[DriverDefect, ...]:
    documents = [read_document(path) for path in paths]
    checker = bundled_checker("driver-defects")
    problems = [
        p for document in documents for p in schema_problems(document, checker, document.data)
    ]
    if problems:
        raise InvalidFilesError(problems)
    return tuple(_defect(entry) for document in documents for entry in document.data)


def _defect(entry: Mapping[str, Any]) -> DriverDefect:
    [(effect, settings)] = entry["effect"].items()
    name = entry.get("report")
    operators = _operators(entry["operators"])
    return DriverDefect(
        name=entry["name"],
        operators=tuple(one for one in operators if _possible(one, entry["when"])),
        conditions=tuple(map(condition, entry["when"])),
        effect=effect,
        settings=settings,
        report=bug_reports()[name] if name else None,
        plausible=entry.get("plausible"),
        survives=entry.get("survives", {}),
    )


def _operators(patterns: list[str]) -> tuple[str, ...]:
    names = operator_names()
    matches = {n: None for pattern in patterns for n in names if fnmatchcase(n, pattern)}
    return tuple(matches)


def _possible(name: str, conditions: Sequence[str | Mapping[str, Any]]) -> bool:
    """Return whether a case of an operator may meet the conditions.

    Only the conditions `aliased`, `input-type`, `input-bits`, `output-type` and `output-bits`
    count, of which all but `aliased` are on the first input or output.
    """
    entry = operator(name)
    for one in conditions:
        if isinstance(one, str):
            continue
        [(word, value)] = one.items()
        if word == "aliased" and not entry.in_place:
            return False
        side, _, what = word.partition("-")
        if what in ("type", "bits") and side in ("input", "output"):
            kind = FieldKind.INPUT if side == "input" else FieldKind.OUTPUT
            types = _data_types(entry, kind)
            if not any(value in (str(t), t.bits) for t in types):
                return False
    return True


def _data_types(entry: Operator, kind: FieldKind) -> set[DataType]:
    """Return the data types, documented or not, that the first tensor of a kind may have."""
    first = next(entry.of_kind(kind), None)
    if first is None:
        return set()
    tables = [table.tensors[first.name] for table in entry.support if first.name in table.tensors]
    undocumented = entry.undocumented_data_types.get(first.name, ())
    return {*undocumented, *(one for table in tables for one in table.data_types)}
