"""Generate random cases of one operator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from dmlconf.cases.model import About, CaseTemplate, Location, PlannedCase
from dmlconf.cases.writing.desc_entry import desc_entry
from dmlconf.catalogue import loader as catalogue
from dmlconf.catalogue.desc import Desc
from dmlconf.catalogue.model import Entry, Operator
from dmlconf.fuzzing.chance import Chance
from dmlconf.fuzzing.data import data_of
from dmlconf.fuzzing.drafts import Drafts
from dmlconf.fuzzing.goals import Goal, Part, goals_of
from dmlconf.fuzzing.layouts import in_place_pairs, with_random_layouts
from dmlconf.fuzzing.search import valid_desc

__all__ = [
    "FuzzedDesc",
    "fuzzed_desc",
    "operator_case",
    "planned",
]

_ATTEMPTS: Final = 64

_TAG: Final = "fuzz"


@dataclass(frozen=True, slots=True)
class FuzzedDesc:
    """A valid random desc and its goal. Only a goal of a layout or a flag may be missed."""

    desc: Desc
    goal: Goal


def operator_case(name: str, seed: int, number: int) -> PlannedCase:
    """Return the valid case that an operator, a seed and a number determine."""
    operator = catalogue.operator(name)
    chance = Chance(seed, name, number)
    desc = fuzzed_desc(operator, seed, number, chance).desc
    entry: dict[str, Any] = {
        "name": str(number),
        "desc": desc_entry(operator, desc, data_of(operator, desc, chance)),
    }
    in_place = in_place_pairs(operator, desc)
    if in_place and chance.once_in(6):
        entry["in_place"] = in_place
    return planned(operator, seed, number, entry)


def fuzzed_desc(operator: Operator, seed: int, number: int, chance: Chance) -> FuzzedDesc:
    """Return a valid desc; an even number has a goal, which the desc reaches if possible."""
    goals = goals_of(operator)
    goal = Goal(Part.ANY)
    if number % 2 == 0 and goals:
        shift = Chance(seed, operator.name).below(len(goals))
        goal = goals[(number // 2 + shift) % len(goals)]
    for wanted in (goal, Goal(Part.ANY)):
        desc = _attempts(operator, wanted, chance)
        if desc is not None:
            return FuzzedDesc(with_random_layouts(operator, desc, wanted, chance), wanted)
    raise AssertionError(f"no desc of {operator.name} meets its constraints")


def _attempts(operator: Operator, goal: Goal, chance: Chance) -> Desc | None:
    tables = [table for table in operator.support if goal.fits(table)]
    for _ in range(_ATTEMPTS if tables else 0):
        table = chance.pick(tables)
        begin = partial(_begin, goal=goal, chance=chance)
        desc = valid_desc(operator, table, chance, goal.holds, begin)
        if desc is not None:
            return desc
    return None


def _begin(desc: Desc, drafts: Drafts, *, goal: Goal, chance: Chance) -> Desc:
    for _ in range(2):  # An absent tensor is added first, and then gets its data type.
        desc = drafts.changed(desc, goal.changes(desc, chance))
    return desc


def planned(
    operator: Entry, seed: int, number: int, entry: Mapping[str, Any], kind: str = _TAG
) -> PlannedCase:
    """Return a case with this entry, named after its seed and number.

    Args:
        operator: the operator, or the entry of graphs.
        kind: what the name of its file begins with, before the seed.
    """
    stem = f"{kind}-{seed}"
    identifier = f"{operator.name.lower()}/{stem}/{number}"
    path = Path(operator.name.lower()) / f"{stem}.yaml"
    about = About(Location(path, 1), operator.page)
    template = CaseTemplate(identifier, operator.name, number, entry, (stem, _TAG), about)
    return PlannedCase(identifier, template, {})
