"""Pages that the program writes, and tutorials, are up to date, and links between files work.

The tested code is in `tests/docs/pages.py` and `tests/docs/tutorials.py`; the tested pages are in
`docs/`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.docs.__main__ import command
from tests.docs.pages import DOCS, PAGES
from tests.docs.tutorials import LAB_TUTORIALS, TUTORIALS, rerun, stable_lines
from tests.each import for_each


@pytest.mark.parametrize("name", PAGES)
def test_page_written_by_the_program_is_up_to_date(name: str) -> None:
    # `python -m tests.docs NAME` writes it again.
    assert (DOCS / name).read_text("utf-8") == PAGES[name]()


@pytest.mark.whole
@pytest.mark.parametrize("tutorial", TUTORIALS, ids=lambda path: path.stem)
def test_tutorial_shows_what_its_commands_print(tutorial: Path) -> None:
    page = tutorial.read_text("utf-8")
    assert stable_lines(rerun(page)) == stable_lines(page)
    # A tutorial shows a run that fails and one that passes.
    assert re.search("^(BROKEN|FAILED): ", page, re.M)
    assert re.search("^PASSED: ", page, re.M)


def test_text_of_the_first_tutorial_has_the_numbers_of_its_output() -> None:
    page = (DOCS / "first-failure.md").read_text("utf-8")
    reduced = re.search(r"reduced +([0-9,]+) elements became ([0-9,]+) in", page)
    assert reduced is not None
    assert f"Of {reduced[1]} elements {reduced[2]} are left." in page


@pytest.mark.lab
@pytest.mark.parametrize("tutorial", LAB_TUTORIALS, ids=lambda path: path.stem)
def test_lab_tutorial_shows_what_its_commands_print(tutorial: Path) -> None:
    page = tutorial.read_text("utf-8")
    assert stable_lines(rerun(page)) == stable_lines(page)
    assert re.search("^PASSED: ", page, re.M)


def test_command_lists_its_pages_and_refuses_others() -> None:
    shown = CliRunner().invoke(command, ["--help"])
    assert shown.exit_code == 0
    missing = [
        name
        for name in (*PAGES, *(p.name for p in (*TUTORIALS, *LAB_TUTORIALS)))
        if name not in shown.output
    ]
    assert missing == []
    refused = CliRunner().invoke(command, ["glossary.md"])
    assert refused.exit_code == 2
    assert "'glossary.md' is not one of" in refused.output


ROOT = DOCS.parent
MARKDOWN = [*sorted(DOCS.rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]


@for_each(MARKDOWN, name=lambda path: str(path.relative_to(ROOT)))
def test_links_between_files_lead_to_existing_files(path: Path) -> None:
    targets = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", path.read_text("utf-8"))
    missing = [target for target in targets if not (path.parent / target).exists()]
    assert missing == []
