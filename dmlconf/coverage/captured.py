"""Compare what captured models and other cases use of DirectML.

Notes of captured cases name the models: "Captured from nudenet/320n, magika/model."
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dmlconf.cases.building.build import build
from dmlconf.cases.model import Case, ExpectedRejection, PlannedCase
from dmlconf.cases.selecting.selection import CAPTURED_TAG, graphs_in, named_models
from dmlconf.catalogue.desc import tensors_of
from dmlconf.catalogue.model import AttributeKind, FieldKind
from dmlconf.coverage.graphs import GraphCoverage

__all__ = ["CapturedCoverage", "CapturedUses", "Use"]

Feature = tuple[str, str]
"""What a case uses: a kind and a name, such as `("data type", "GEMM ATensor FLOAT16")`. The other
kinds are `operator`, `attribute` and `neighbours`."""


@dataclass(frozen=True, slots=True)
class Use:
    """How a feature of DirectML is used.

    Attributes:
        models: the captured models that use it.
        others: how many other cases use it.
    """

    models: frozenset[str]
    others: int


@dataclass(frozen=True, slots=True)
class CapturedCoverage:
    """What captured models use.

    Attributes:
        cases: number of captured cases, graphs included.
        uses: how each feature of the captured cases is used.
    """

    models: frozenset[str]
    cases: int
    uses: Mapping[Feature, Use]

    def only_captured(self) -> list[Feature]:
        """Return the features that only captured cases have."""
        return sorted(feature for feature, use in self.uses.items() if not use.others)


class CapturedUses:
    """Collects how captured models and other cases use each feature."""

    def __init__(self) -> None:
        self._cases = 0
        self._models: dict[Feature, set[str]] = {}
        self._others: Counter[Feature] = Counter()

    def counting(self, cases: Iterable[Case]) -> Iterator[Case]:
        """Yield cases of operators, and count the features of those that expect no rejection."""
        for case in cases:
            if not isinstance(case.expectation, ExpectedRejection):
                self._add(set(_features(case)), case.tags, case.about.note)
            yield case

    def _add(self, features: Collection[Feature], tags: Collection[str], note: str | None) -> None:
        if CAPTURED_TAG not in tags:
            self._others.update(features)
            return
        self._cases += 1
        for feature in features:
            self._models.setdefault(feature, set()).update(named_models(note))

    def coverage(self, plan: Iterable[PlannedCase], graphs: GraphCoverage) -> CapturedCoverage:
        """Count the captured graphs as well, and return how each feature is used.

        A second call would count them twice.

        Args:
            plan: cases, of which only the captured graphs are read.
            graphs: the coverage of all graphs; captured graphs without its operators are skipped.
        """
        captured: Counter[Feature] = Counter()
        for planned in graphs_in(plan):
            template = planned.template
            if CAPTURED_TAG not in template.tags:
                continue
            graph = build(planned).graph
            if graphs.operators.isdisjoint(graph.operators):
                continue
            pairs = [pair for pair in graph.neighbours() if pair in graphs.neighbours]
            features = [_neighbours(pair) for pair in pairs]
            captured.update(features)
            self._add(features, template.tags, template.about.note)
        for pair, count in graphs.neighbours.items():
            self._others[_neighbours(pair)] = count - captured[_neighbours(pair)]
        uses = {
            feature: Use(frozenset(models), self._others[feature])
            for feature, models in self._models.items()
        }
        models = frozenset(name for use in uses.values() for name in use.models)
        return CapturedCoverage(models, self._cases, uses)


def _neighbours(pair: tuple[str, str]) -> Feature:
    return "neighbours", f"{pair[0]} feeds {pair[1]}"


_CHOICES: Final = (AttributeKind.ENUM, AttributeKind.BOOL, AttributeKind.OPERATOR)
"""The kinds of attributes whose values are features; numbers have too many values."""


def _features(case: Case) -> Iterator[Feature]:
    name = case.operator_name
    yield "operator", name
    for tensor, _, desc in tensors_of(case.operator, case.desc):
        yield "data type", f"{name} {tensor.partition('[')[0]} {desc.DataType}"
    for entry in case.operator.of_kind(FieldKind.ATTRIBUTE):
        if entry.attribute_kind not in _CHOICES or entry.is_array:
            continue
        value = case.desc.get(entry.name)
        text = value["operator"] if isinstance(value, dict) else value
        yield "attribute", f"{name} {entry.name} {text}"
