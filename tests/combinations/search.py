"""Choose cases one at a time, each with as many missing pairs as can be found.

A missing pair is laid over a case that the suite has, since most of a desc is bound: sizes follow
from each other. Then the other parameters take the values that bring most missing pairs, as long as
the catalogue permits the desc. The same suite gives the same cases: nothing is random.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Final

from dmlconf.catalogue.desc import tensors_of
from dmlconf.catalogue.model import FieldKind, Operator
from dmlconf.coverage.combinations.measure import Combination, CombinationCoverage
from dmlconf.coverage.combinations.parameters import Parameter, values_of
from dmlconf.judging.unjudged import judges_nothing
from tests.combinations.drafts import MOST_ELEMENTS, Draft, Pool, case_of, changes, may_have
from tests.combinations.noticing import notices
from tests.judging.wrong_results import CHANGES, fails_wrong_results

__all__ = ["covering"]

_BASES = 40
_VALUES = 3
_MOST_TRIED = 200
"""Drafts in which a value that no draft has is tried."""

_FAILURES = 6
"""After so many pairs without a case, a value that no case has is not tried again."""

_TELLING: Final = ("special", "fractions", "large", "whole")
"""Classes of data that are tried where those of a draft give outputs that say nothing."""

_Values = tuple[str | None, ...]


class _Search:
    def __init__(self, coverage: CombinationCoverage, drafts: Sequence[Draft], pool: Pool) -> None:
        assert isinstance(coverage.operator, Operator)
        self.operator = coverage.operator
        self.parameters = coverage.parameters
        self.at = {each.name: place for place, each in enumerate(self.parameters)}
        self.missing = dict.fromkeys(coverage.missing)
        self.pool = pool
        self.drafts: list[tuple[Draft, _Values]] = []
        seen: set[tuple[_Values, tuple[tuple[int, ...], ...]]] = set()
        for draft in drafts:
            values = self.values(draft)
            tensors = tensors_of(self.operator, draft.desc, FieldKind.INPUT, FieldKind.OUTPUT)
            sizes = tuple(tensor.Sizes for _, _, tensor in tensors)
            if values is not None and (values, sizes) not in seen:
                seen.add((values, sizes))
                self.drafts.append((draft, values))
        self.add_rare_values()

    def values(self, draft: Draft) -> _Values | None:
        """Return the values of a draft; None if the catalogue refuses it or it is too large."""
        try:
            case = case_of(self.operator, draft)
            tensors = tensors_of(self.operator, draft.desc, FieldKind.INPUT, FieldKind.OUTPUT)
            if sum(tensor.ElementCount for _, _, tensor in tensors) > MOST_ELEMENTS:
                return None
            if case.documented_violations():
                return None
            return values_of(case, self.parameters)
        except (ValueError, TypeError, LookupError, OverflowError):
            return None

    def add_rare_values(self) -> None:
        """Add a draft with each value that misses pairs and that no draft has, if one is found."""
        wanted = dict.fromkeys(each for pair in self.missing for each in pair)
        for name, value in wanted:
            at = self.at[name]
            if any(values[at] == value for _, values in self.drafts):
                continue
            for draft, values in self.drafts[:_MOST_TRIED]:
                found = self.changed(draft, values, self.parameters[at], value, set())
                if found is not None:
                    self.drafts.append(found)
                    break

    def pairs(self, values: _Values) -> list[Combination]:
        """Return the missing pairs of values that a case with these values is to cover.

        What only -infinity gives is often NaN in every element, where nothing else shows: other
        pairs get other data.
        """
        present = [(p.name, v) for p, v in zip(self.parameters, values, strict=True) if v]
        pairs: list[Combination] = [p for p in combinations(present, 2) if p in self.missing]
        infinite = ("data", "all -infinity")
        return [pair for pair in pairs if infinite in pair] if infinite in present else pairs

    def changed(
        self, draft: Draft, values: _Values, parameter: Parameter, value: str, kept: set[str]
    ) -> tuple[Draft, _Values] | None:
        """Return a draft with another value, whose values of some parameters stay the same."""
        for other in changes(self.operator, draft, parameter, value, self.pool):
            found = self.values(other)
            if found is None or found[self.at[parameter.name]] != value:
                continue
            if all(found[self.at[name]] == values[self.at[name]] for name in kept):
                return other, found
        return None

    def made(self, pair: Combination) -> tuple[Draft, _Values] | None:
        """Return a draft that has a missing pair, and others besides."""
        wanted = dict(pair)

        def rank(each: tuple[Draft, _Values]) -> tuple[int, int, int]:
            matches = sum(
                each[1][self.at[name]] == value or may_have(each[0], name, value)
                for name, value in pair
            )
            absent = sum(each[1][self.at[name]] is None for name, _ in pair)
            return -matches, absent, zlib.crc32(repr((pair, each[1])).encode())

        for draft, values in sorted(self.drafts, key=rank)[:_BASES]:
            current: tuple[Draft, _Values] | None = draft, values
            kept: set[str] = set()
            for name, value in wanted.items():
                assert current is not None
                if current[1][self.at[name]] != value:
                    parameter = self.parameters[self.at[name]]
                    current = self.changed(*current, parameter, value, kept)
                    if current is None:
                        break
                kept.add(name)
            if current is not None:
                for made, values in (self.enriched(*current, set(kept)), current):
                    for each in (made, replace(made, mild=True)):
                        if self.judges(each) and self.values(each) == values:
                            return each, values
                found = None if "data" in wanted else self.with_other_data(*current, kept)
                if found is not None:
                    return found
        return None

    def with_other_data(
        self, draft: Draft, values: _Values, kept: set[str]
    ) -> tuple[Draft, _Values] | None:
        """Return the draft with data that its outputs tell apart, as IS_NAN does only NaN."""
        parameter = next((each for each in self.parameters if each.name == "data"), None)
        for value in _TELLING if parameter is not None else ():
            if parameter is not None and value in parameter.values:
                found = self.changed(draft, values, parameter, value, kept)
                if found is not None and self.judges(found[0]):
                    return found
        return None

    def judges(self, draft: Draft) -> bool:
        """Return whether the data of a draft fit its tensors, and a case of it notices mistakes.

        A tenth more than infinity, or than the lowest number, is as right as that.
        """
        case = case_of(self.operator, draft)
        try:
            case = case.with_inputs()
        except (ValueError, OverflowError):
            return False
        infinite = draft.data_class == "all -infinity"
        changes = {k: v for k, v in CHANGES.items() if k != "scaled" or not infinite}
        return not judges_nothing(case) and fails_wrong_results(case, changes) and notices(case)

    def enriched(self, draft: Draft, values: _Values, kept: set[str]) -> tuple[Draft, _Values]:
        """Give the other parameters the values that bring most missing pairs."""
        for parameter in self.parameters:
            if parameter.name in kept:
                continue
            present = [(p.name, v) for p, v in zip(self.parameters, values, strict=True)]
            others = [each for each in present if each[0] in kept]
            gains = sorted(
                (
                    (-self.gain(parameter, value, others), at, value)
                    for at, value in enumerate(parameter.values)
                ),
            )
            current = values[self.at[parameter.name]]
            for gain, _, value in gains[:_VALUES]:
                if gain == 0:
                    break
                if value == current:
                    kept.add(parameter.name)
                    break
                found = self.changed(draft, values, parameter, value, kept)
                if found is not None:
                    draft, values = found
                    kept.add(parameter.name)
                    break
        return draft, values

    def gain(
        self, parameter: Parameter, value: str, others: Sequence[tuple[str, str | None]]
    ) -> int:
        """Return how many missing pairs a value makes with others."""
        place = self.at[parameter.name]
        count = 0
        for name, other in others:
            if other is not None:
                one, two = (parameter.name, value), (name, other)
                pair = (one, two) if place < self.at[name] else (two, one)
                count += pair in self.missing
        return count


def covering(
    coverage: CombinationCoverage, drafts: Sequence[Draft], pool: Pool, most: int
) -> tuple[list[Draft], list[Combination]]:
    """Return drafts that cover missing pairs, and the pairs for which none was found."""
    search = _Search(coverage, drafts, pool)
    found: list[Draft] = []
    failed: list[Combination] = []
    possible = {each for pair in coverage.covered for each in pair}
    failures: Counter[tuple[str, str]] = Counter()
    for pair in list(search.missing):
        if len(found) >= most:
            break
        if pair not in search.missing:
            continue
        hopeless = any(failures[each] >= _FAILURES and each not in possible for each in pair)
        made = None if hopeless else search.made(pair)
        if made is None:
            failed.append(pair)
            failures.update(pair)
            continue
        draft, values = made
        possible.update(pair)
        search.drafts.append(made)
        for each in search.pairs(values):
            del search.missing[each]
        found.append(draft)
    return found, failed
