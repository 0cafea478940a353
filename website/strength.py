"""What the suite does not notice of each operator, as the pages of operators show it.

Measuring takes minutes, so the figures are those that `docs/strength.md` keeps, which
`dmlconf strength --report markdown:docs/strength.md` writes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["Weakness", "kept_weaknesses", "strength_section", "weaknesses"]

_PAGE: Final = Path(__file__).resolve().parent.parent / "docs" / "strength.md"

_PERTURBED: Final = re.compile(r"- (?P<what>[^:]+): (?P<operator>[A-Z]\w+) (?P<told>notices .+)")
_SURVIVES: Final = re.compile(r"- (?P<operator>[A-Z]\w+): (?P<what>[^:]+): (?P<told>.+)")


@dataclass(frozen=True, slots=True)
class Weakness:
    """Something wrong of one operator that the suite does not notice, or not in every case.

    Attributes:
        operator: the operator's name.
        what: the kind of perturbation, or the driver defect.
        told: how much of it is noticed, or which case is missing.
    """

    operator: str
    what: str
    told: str


def weaknesses(page: str) -> tuple[list[Weakness], list[Weakness]]:
    """Return what `docs/strength.md` lists by perturbation and by driver defect.

    Args:
        page: the page.

    Raises:
        ValueError: a line of these lists has another form.
    """
    return (
        _listed(page, "By perturbation", _PERTURBED),
        _listed(page, "By driver defect", _SURVIVES),
    )


def _listed(page: str, title: str, form: re.Pattern[str]) -> list[Weakness]:
    section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    found = []
    for line in section.splitlines():
        if line.startswith("- "):
            match = form.fullmatch(line)
            if match is None:
                raise ValueError(f"docs/strength.md: {title}: not in the form of the list: {line}")
            found.append(Weakness(match["operator"], match["what"], match["told"]))
    return found


@cache
def kept_weaknesses() -> tuple[list[Weakness], list[Weakness]]:
    """Return what `docs/strength.md` lists."""
    return weaknesses(_PAGE.read_text("utf-8"))


def strength_section(
    name: str, lists: tuple[Sequence[Weakness], Sequence[Weakness]], defects: int
) -> str:
    """Return the section of an operator's page on what the suite does not notice of it.

    Args:
        name: the operator's name.
        lists: as `weaknesses` returns them.
        defects: how many driver defects concern the operator.
    """
    perturbed, surviving = ([each for each in listed if each.operator == name] for listed in lists)
    lines = ["## Strength", ""]
    lines += _part(
        perturbed,
        "Of outputs with one element changed, the suite notices at least 99%",
        " of each kind",
        " but for:",
    )
    if defects:
        those = f"Of {defects} driver defects that concern the operator, it notices"
        lines += _part(surviving, those, " all", f" {defects - len(surviving)}, but not:")
    lines.append(
        "[strength.md](../strength.md) has all figures and tells how they are measured; "
        f"`dmlconf strength -o {name} -v` measures them anew."
    )
    return "\n".join(lines) + "\n"


def _part(found: Sequence[Weakness], begin: str, without: str, with_some: str) -> list[str]:
    if not found:
        return [f"{begin}{without}.", ""]
    return [f"{begin}{with_some}", "", *(f"- {each.what}: {each.told}" for each in found), ""]
