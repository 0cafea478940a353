"""Pages that the program writes, and tutorials, are up to date, and links between files work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.docs.__main__ import command
from tests.docs.pages import DOCS, PAGES
from tests.docs.tutorials import LAB_TUTORIALS, TUTORIALS, lasting, retyped
from tests.each import for_each


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_program_says(name: str) -> None:
    # `python -m tests.docs NAME` writes it again.
    assert (DOCS / name).read_text("utf-8") == PAGES[name]()


@pytest.mark.whole
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_the_tutorial_is_as_it_was_typed(tutorial: Path) -> None:
    page = tutorial.read_text("utf-8")
    assert lasting(retyped(page)) == lasting(page)
    # The tutorial shows a run that fails and one that passes, so its output is not trivial.
    assert re.search("^(BROKEN|FAILED): ", page, re.M)
    assert re.search("^PASSED: ", page, re.M)


@pytest.mark.lab
@pytest.mark.parametrize("tutorial", LAB_TUTORIALS, ids=lambda path: path.stem)
def test_the_tutorial_is_as_it_was_typed_in_the_lab(tutorial: Path) -> None:
    page = tutorial.read_text("utf-8")
    assert lasting(retyped(page)) == lasting(page)
    assert re.search("^PASSED: ", page, re.M)


def test_the_command_that_writes_pages_says_which_there_are() -> None:
    shown = CliRunner().invoke(command, ["--help"])
    assert shown.exit_code == 0
    missing = [
        name
        for name in (*PAGES, *(p.name for p in (*TUTORIALS, *LAB_TUTORIALS)))
        if name not in shown.output
    ]
    assert missing == []
    assert CliRunner().invoke(command, ["glossary.md"]).exit_code == 2


ROOT = DOCS.parent
MARKDOWN = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


@for_each(MARKDOWN, name=lambda path: str(path.relative_to(ROOT)))
def test_links_between_files_lead_somewhere(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text("utf-8"))
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert missing == []
