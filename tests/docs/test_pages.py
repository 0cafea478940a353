from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.first_case import PAGE, lasting, retyped
from tests.docs.pages import DOCS, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_program_says(name: str) -> None:
    # `python -m tests.docs` writes it anew.
    assert (DOCS / name).read_text("utf-8") == PAGES[name]()


def test_the_first_case_is_as_it_was_typed() -> None:
    page = PAGE.read_text("utf-8")
    assert lasting(retyped(page)) == lasting(page)
    # What would not differ if nothing was run or compared:
    assert "NOTHING PASSED: 1 unchecked of 1 case" in page
    assert "FAILED: 1 of 1 case fails the run" in page
    assert "PASSED: 1 passed of 1 case" in page


ROOT = DOCS.parent
MARKDOWN = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


@pytest.mark.parametrize("path", MARKDOWN, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_between_files_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text("utf-8"))
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert missing == []
