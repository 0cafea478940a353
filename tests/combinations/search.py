"""Choose cases that cover missing pairs, each as many as can be found.

A case starts from a draft, usually a case of the suite, which is changed to have one missing pair.
Then the other parameters take values that cover the most missing pairs. Nothing is random.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Final

from dmlconf.catalogue.desc import tensors_of
from dmlconf.catalogue.model import Operator
from dmlconf.coverage.combinations.measure import Combination, CombinationCoverage
from dmlconf.coverage.combinations.parameters import Parameter, values_of
from dmlconf.judging.unjudged import judges_nothing
from tests.combinations.attention import MOST_SCORES, scores
from tests.combinations.drafts import (
    INFINITE,
    MOST_ELEMENTS,
    Draft,
    Pool,
    case_of,
    changes,
    may_have,
)
from tests.combinations.noticing import notices, notices_gross_mistakes
from tests.judging.wrong_results import CHANGES, fails_wrong_results

__all__ = ["covering"]

_BASES = 40
"""How many drafts are tried for a pair; those that have one of its values come first."""

_VALUES = 3
"""How many values of each other parameter are tried; those that cover most pairs come first."""

_VARIED = 3
"""If no draft with a pair notices mistakes, this many are tried with other values elsewhere."""

_MOST_TRIED = 200
"""In how many drafts `add_rare_values` tries a value."""

_FAILURES = 6
"""After how many pairs without a case the search gives up a value that no case has."""

_TELLING: Final = ("special", "fractions", "large", "whole")
"""Classes of data to try if a draft notices no mistakes."""

_Values = tuple[str | None, ...]


@dataclass(frozen=True)
class _MadeDraft:
    """A draft with a missing pair, and the values of all parameters.

    If it is `gross`, its outputs show only gross mistakes.
    """

    draft: Draft
    values: _Values
    gross: bool = False


class _Search:
    """The drafts found so far, and the pairs that are still missing.

    Attributes:
        at: the index of each parameter, by name.
        missing: the missing pairs, as keys.
        pool: values that drafts may take.
        drafts: drafts to start from, with the values of their parameters.
    """

    def __init__(self, coverage: CombinationCoverage, drafts: Sequence[Draft], pool: Pool) -> None:
        assert isinstance(coverage.operator, Operator)
        self.operator = coverage.operator
        self.parameters = coverage.parameters
        self.at = {each.name: index for index, each in enumerate(self.parameters)}
        self.missing = dict.fromkeys(coverage.missing)
        self.pool = pool
        self.drafts: list[tuple[Draft, _Values]] = []
        seen: set[tuple[_Values, tuple[tuple[int, ...], ...]]] = set()
        for draft in drafts:
            values = self.values(draft)
            tensors = tensors_of(self.operator, draft.desc)
            sizes = tuple(tensor.Sizes for _, _, tensor in tensors)
            if values is not None and (values, sizes) not in seen:
                seen.add((values, sizes))
                self.drafts.append((draft, values))
        self.add_rare_values()

    def values(self, draft: Draft) -> _Values | None:
        """Return a draft's values, or None if it is invalid or too large."""
        try:
            case = case_of(self.operator, draft)
            tensors = tensors_of(self.operator, draft.desc)
            if sum(tensor.ElementCount for _, _, tensor in tensors) > MOST_ELEMENTS:
                return None
            if scores(self.operator, draft.desc) > MOST_SCORES:
                return None
            if case.documented_violations():
                return None
            return values_of(case, self.parameters)
        except (ValueError, TypeError, LookupError, OverflowError):
            return None

    def add_rare_values(self) -> None:
        """Add a draft for each value of a missing pair that no draft has, if one is found."""
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

    def pairs(self, pair: Combination, made: _MadeDraft) -> list[Combination]:
        """Return which missing pairs count as covered by a case that was made for `pair`.

        For data of -infinity alone, only pairs with these data count. If the outputs show only
        gross mistakes, `pair` counts, or the pairs with its class of data.
        """
        names = (each.name for each in self.parameters)
        present = [(name, v) for name, v in zip(names, made.values, strict=True) if v]
        pairs: list[Combination] = [p for p in combinations(present, 2) if p in self.missing]
        data = ("data", made.draft.data_class)
        if data == ("data", "all -infinity") or (made.gross and data in pair):
            return [each for each in pairs if data in each]
        return [pair] if made.gross else pairs

    def changed(
        self, draft: Draft, values: _Values, parameter: Parameter, value: str, kept: set[str]
    ) -> tuple[Draft, _Values] | None:
        for other in changes(self.operator, draft, parameter, value, self.pool):
            found = self.values(other)
            if found is None or found[self.at[parameter.name]] != value:
                continue
            if all(found[self.at[name]] == values[self.at[name]] for name in kept):
                return other, found
        return None

    def made(self, pair: Combination) -> _MadeDraft | None:
        """Return a draft that has a missing pair, and as many others as can be found."""
        wanted = dict(pair)
        gross: _MadeDraft | None = None
        had: list[tuple[Draft, _Values]] = []

        def rank(each: tuple[Draft, _Values]) -> tuple[int, int, int]:
            matches = sum(
                each[1][self.at[name]] == value or may_have(each[0], name, value)
                for name, value in pair
            )
            absent = sum(each[1][self.at[name]] is None for name, _ in pair)
            absent += each[0].data_class in INFINITE and "data" not in wanted
            return -matches, absent, zlib.crc32(repr((pair, each[1])).encode())

        for draft, values in sorted(self.drafts, key=rank)[:_BASES]:
            current = self.having(draft, values, wanted)
            if current is not None:
                kept = set(wanted)
                candidates = (self.enriched(*current, set(kept)), current)
                for made, values in candidates:
                    for mild in (0, 1, 2) if made.data_class == "special" else (0, 1):
                        each = replace(made, mild=mild)
                        if self.judges(each) and self.values(each) == values:
                            return _MadeDraft(each, values)
                found = None if "data" in wanted else self.with_other_data(*current, kept)
                if found is not None:
                    return _MadeDraft(*found)
                had.append(current)
                if gross is None:
                    for made, values in candidates:
                        if gross is None and self.shows_gross_mistakes(made):
                            gross = _MadeDraft(made, values, gross=True)
        for current in had[:_VARIED]:
            for draft, values in self.varied(*current, set(wanted)):
                if self.judges(draft):
                    return _MadeDraft(draft, values)
                if gross is None and self.shows_gross_mistakes(draft):
                    gross = _MadeDraft(draft, values, gross=True)
        return gross

    def having(
        self, draft: Draft, values: _Values, wanted: Mapping[str, str]
    ) -> tuple[Draft, _Values] | None:
        had = {name for name, value in wanted.items() if values[self.at[name]] == value}
        for kept in (had, set[str]()) if had else (had,):
            current: tuple[Draft, _Values] | None = draft, values
            for name, value in wanted.items():
                if current is not None and current[1][self.at[name]] != value:
                    parameter = self.parameters[self.at[name]]
                    current = self.changed(*current, parameter, value, kept - {name})
                kept = kept | {name}
            if current is not None:
                return current
        return None

    def varied(
        self, draft: Draft, values: _Values, kept: set[str]
    ) -> Iterator[tuple[Draft, _Values]]:
        for parameter in self.parameters:
            old_value = values[self.at[parameter.name]]
            if parameter.name not in kept and not parameter.name.startswith("layout of "):
                for value in parameter.values:
                    other = (
                        None
                        if value == old_value
                        else self.changed(draft, values, parameter, value, kept)
                    )
                    if other is not None:
                        yield other

    def with_other_data(
        self, draft: Draft, values: _Values, kept: set[str]
    ) -> tuple[Draft, _Values] | None:
        parameter = next((each for each in self.parameters if each.name == "data"), None)
        for value in _TELLING if parameter is not None else ():
            if parameter is not None and value in parameter.values:
                found = self.changed(draft, values, parameter, value, kept)
                if found is not None and self.judges(found[0]):
                    return found
        return None

    def judges(self, draft: Draft) -> bool:
        case = case_of(self.operator, draft)
        try:
            case = case.with_inputs()
        except (ValueError, OverflowError):
            return False
        infinite = draft.data_class == "all -infinity"  # Scaling does not change it.
        changes = {k: v for k, v in CHANGES.items() if k != "scaled" or not infinite}
        return not judges_nothing(case) and fails_wrong_results(case, changes) and notices(case)

    def shows_gross_mistakes(self, draft: Draft) -> bool:
        try:
            case = case_of(self.operator, draft).with_inputs()
        except (ValueError, OverflowError):
            return False
        return not judges_nothing(case) and notices_gross_mistakes(case)

    def enriched(self, draft: Draft, values: _Values, kept: set[str]) -> tuple[Draft, _Values]:
        """Give parameters outside `kept` the values that cover most missing pairs."""
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
        index = self.at[parameter.name]
        count = 0
        for name, other in others:
            if other is not None:
                first, second = (parameter.name, value), (name, other)
                pair = (first, second) if index < self.at[name] else (second, first)
                count += pair in self.missing
        return count


def covering(
    coverage: CombinationCoverage, drafts: Sequence[Draft], pool: Pool, most: int
) -> tuple[list[Draft], list[Combination]]:
    """Return at most `most` drafts that cover missing pairs, and pairs that got none."""
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
        possible.update(pair)
        search.drafts.append((made.draft, made.values))
        for each in search.pairs(pair, made):
            del search.missing[each]
        found.append(made.draft)
    return found, failed
