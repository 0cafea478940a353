"""Deviations: where the specification of ONNX or WebNN differs from DirectML's documentation.

Each deviation quotes a sentence of the target's specification, with a link. A refusal is waived if
a deviation permits it (`permitted_refusals`). For wrong values, right elements replace those that
deviations concern (`deviating_elements`, `computed_elements`). If the case then no longer fails,
the failure is waived.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dmlconf.backends.protocol import Environment, Outcome, Outputs, Rejection
from dmlconf.backends.subject import tested_environment
from dmlconf.cases.model import Case
from dmlconf.catalogue.loader import operator_name
from dmlconf.documents.reader import read_document
from dmlconf.excuses.condition_problems import require_operators
from dmlconf.excuses.scope import Facts, Scope
from dmlconf.expressions import Expression
from dmlconf.reference.element_wise.scale_bias import is_identity, scaled
from dmlconf.reference.evaluation import evaluate
from dmlconf.resources import schemas_directory
from dmlconf.tensors.datatypes import Array, bits_of
from dmlconf.verdicts.verdict import OF_VALUES, ReasonKind, Status, Verdict

# Runs on DirectML do not import formulas.
if TYPE_CHECKING:
    from dmlconf.faults.computed import Formula

__all__ = [
    "NO_DEVIATIONS",
    "Deviation",
    "Deviations",
    "Results",
    "deviations_of",
    "formula_of",
    "patched",
    "read_deviations",
]

_DIRECTML: Final = "directml"

_TOLERANCES: Final = frozenset({"near", "ulp"})
"""Names of the functions of `deviating_elements` that find elements close to the right ones. A
deviation with one of them excuses only failures of the kind WRONG_VALUES."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A statement of a target's specification that differs from DirectML's documentation.

    Attributes:
        scope: the cases that the deviation may concern.
        elements: names in `ELEMENTS`; an element may differ if all these functions find it.
        arguments: further arguments of the functions in `ELEMENTS`, or the permitted errors of
            `formula`.
        formula: computes the elements that the target may give instead.
        refuses: a name in `REFUSALS` if the target may refuse some inputs; otherwise empty.
        says: the sentence, and what it leaves open.
        link: the address of the sentence.
    """

    name: str
    scope: Scope
    elements: tuple[str, ...] = ()
    arguments: Mapping[str, float] = field(default_factory=dict)
    formula: Formula | None = None
    refuses: str = ""
    says: str = ""
    link: str = ""

    def concerned(self, case: Case, computed: Results) -> Callable[[str, Array], Array]:
        """Return a function from an output's name and actual elements to a mask of elements.

        The mask has the elements that may differ from the right ones.
        """
        from dmlconf.excuses.computed_elements import computed_elements
        from dmlconf.excuses.deviating_elements import ELEMENTS
        from dmlconf.faults.prediction import Prediction, predictions

        @cache
        def predicted() -> tuple[Prediction, ...]:
            assert self.formula is not None
            return tuple(predictions(case, self.formula, computed.right))

        @np.errstate(all="ignore")
        def elements(output: str, actual: Array) -> Array:
            if self.formula is not None:
                return computed_elements(predicted(), output, actual, **self.arguments)
            right = computed.right[output]
            concerned = np.full(right.shape, bool(self.elements))
            for name in self.elements:
                found = ELEMENTS[name]
                concerned &= found(case, computed.operands, right, actual, **self.arguments)
            return concerned

        return elements

    def permits_refusal(self, case: Case, inputs: Mapping[str, Array]) -> bool:
        """Return whether the target may refuse a case because of its inputs."""
        from dmlconf.excuses.permitted_refusals import REFUSALS

        return bool(self.refuses) and REFUSALS[self.refuses](case, inputs)


@dataclass(frozen=True, slots=True)
class Deviations:
    """The deviations of a target.

    Attributes:
        target: the target's name; empty for DirectML, and for a backend without a known target.
    """

    target: str = ""
    deviations: tuple[Deviation, ...] = ()

    def excuse(
        self,
        case: Case,
        outcome: Outcome,
        verdict: Verdict,
        judge: Callable[[Case, Outcome], Verdict],
    ) -> Verdict:
        """Return the verdict; it is `waived` if deviations explain the whole failure.

        Args:
            judge: judges another outcome of the case.
        """
        if not self.deviations or verdict.status is not Status.FAILED or verdict.reason is None:
            return verdict
        covering = self.covering(case)
        if isinstance(outcome, Rejection):
            inputs = case.inputs()
            refusing = [each for each in covering if each.permits_refusal(case, inputs)]
            return _waived(verdict, refusing[:1]) if refusing else verdict
        if verdict.reason.kind not in OF_VALUES or not isinstance(outcome, Outputs):
            return verdict
        if verdict.reason.kind is not ReasonKind.WRONG_VALUES:
            covering = [each for each in covering if not _TOLERANCES & {*each.elements}]
        used, without = patched(case, outcome, covering)
        if not used or judge(case, without).status.fails_run:
            return verdict
        return _waived(verdict, used)

    def covering(self, case: Case) -> list[Deviation]:
        """Return the deviations that may concern a case."""
        facts = Facts(case)
        return [each for each in self.deviations if each.scope.covers(case, facts)]


NO_DEVIATIONS: Final = Deviations()


@dataclass(frozen=True, slots=True)
class Results:
    """A case's inputs and right outputs.

    Attributes:
        operands: the inputs, with ScaleBias applied.
    """

    operands: Mapping[str, Array]
    right: Mapping[str, Array]


def patched(
    case: Case, outcome: Outputs, deviations: list[Deviation]
) -> tuple[list[Deviation], Outputs]:
    """Return the deviations that concern wrong elements, and the outcome with corrected elements.

    Elements count as wrong if any bit differs, even if their rule permits them. A deviation is
    returned only if it concerns a wrong element that no deviation before it concerns. Samples of
    outputs, and outputs with wrong sizes or data types, are not corrected.
    """
    results = Results(_operands(case), evaluate(case))
    elements = [(each, each.concerned(case, results)) for each in deviations]
    arrays = dict(outcome.arrays)
    used: dict[str, Deviation] = {}
    for name, expected in results.right.items():
        actual = arrays.get(name)
        if actual is None or (actual.shape, actual.dtype) != (expected.shape, expected.dtype):
            continue
        differs = bits_of(actual) != bits_of(expected)
        concerned = np.zeros(expected.shape, bool)
        for each, its_elements in elements:
            if not differs.any():
                break
            its = its_elements(name, actual) & differs
            if (its & ~concerned).any():
                used[each.name] = each
            concerned |= its
        arrays[name] = np.where(concerned, expected, actual)
    return list(used.values()), replace(outcome, arrays=arrays)


def _operands(case: Case) -> Mapping[str, Array]:
    """Return the inputs; if the desc has a ScaleBias, it is applied to a float InputTensor."""
    inputs, by = case.inputs(), case.desc.get("ScaleBias")
    if is_identity(by):
        return inputs
    tensor = inputs["InputTensor"]
    if tensor.dtype.kind != "f":
        return inputs
    with np.errstate(over="ignore"):
        operand = scaled(tensor, by).astype(np.promote_types(tensor.dtype, np.float32))
    return {**inputs, "InputTensor": operand}


def _waived(verdict: Verdict, deviations: list[Deviation]) -> Verdict:
    assert verdict.reason is not None
    names = " and ".join(each.name for each in deviations)
    says = " ".join(f"{each.says} {each.link}" for each in deviations)
    message = f"{names}: {says} Here {verdict.reason.kind}: {verdict.reason.message}"
    reason = replace(verdict.reason, kind=ReasonKind.DEVIATION, message=message)
    return verdict.judged(status=Status.WAIVED, reason=reason)


def deviations_of(environment: Environment | Mapping[str, Any]) -> Deviations:
    """Return the deviations of the target that a backend's environment names.

    There are none for the backend `directml`, and none without a known target.

    Raises:
        InvalidFilesError: as for `read_deviations`.
    """
    tested = tested_environment(environment)
    if tested["backend"] == _DIRECTML:
        return NO_DEVIATIONS  # DirectML is tested against its own documentation.
    target = tested["details"].get("target")
    known = {path.stem for path in (schemas_directory() / "targets").glob("*.yaml")}
    return read_deviations(str(target)) if target in known else NO_DEVIATIONS


@cache
def read_deviations(target: str, path: Path | None = None) -> Deviations:
    """Return the deviations of a target.

    Args:
        path: a file to read instead of `schemas/targets/TARGET.yaml`.

    Raises:
        InvalidFilesError: the file cannot be read, or names unknown operators.
    """
    document = read_document(path or schemas_directory() / "targets" / f"{target}.yaml")
    entries = require_operators(document, "deviations")
    return Deviations(target, tuple(map(_deviation, entries)))


def formula_of(data: Mapping[str, Any]) -> Formula | None:
    """Return the formula that an entry of a deviation or finding names; None if there is none."""
    if "computed_by" not in data:
        return None
    from dmlconf.faults.runtimes.formulas import RUNTIME_FORMULAS

    return RUNTIME_FORMULAS[data["computed_by"]]


def _deviation(data: Mapping[str, Any]) -> Deviation:
    where = Expression(data["where"]) if "where" in data else None
    elements = data.get("elements", ())
    return Deviation(
        name=data["name"],
        scope=Scope(frozenset(map(operator_name, data["operators"])), None, where),
        elements=(elements,) if isinstance(elements, str) else tuple(elements),
        arguments=data.get("arguments", {}),
        formula=formula_of(data),
        refuses=data.get("refuses", ""),
        says=data["says"],
        link=data["link"],
    )
