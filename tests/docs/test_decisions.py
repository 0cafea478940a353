"""The pages of `docs/decisions/` have numbers and dates, and the index lists each of them.

The tested pages are in `docs/decisions/`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tests.each import for_each

DECISIONS: Final = Path(__file__).resolve().parents[2] / "docs" / "decisions"
FILES: Final = sorted(DECISIONS.glob("[0-9]*.md"))


@for_each(FILES, name=lambda path: path.stem)
def test_a_decision_has_its_number_and_its_date(path: Path) -> None:
    title, _, date = path.read_text("utf-8").splitlines()[:3]
    assert title.startswith(f"# {int(path.name[:4])}. ")
    assert re.fullmatch(r"Date: \d{4}-\d{2}-\d{2}", date)


def test_the_index_lists_every_decision() -> None:
    _, _, table = (DECISIONS / "README.md").read_text("utf-8").partition("\n|---|---|---|\n")
    expected = []
    for path in FILES:
        title, _, date = path.read_text("utf-8").splitlines()[:3]
        number, _, text = title.removeprefix("# ").partition(". ")
        expected.append(f"| {number} | [{text}]({path.name}) | {date.removeprefix('Date: ')} |")
    assert table.splitlines() == expected


def test_no_two_decisions_have_the_same_number() -> None:
    numbers = [path.name[:4] for path in FILES]
    assert len(set(numbers)) == len(numbers)
