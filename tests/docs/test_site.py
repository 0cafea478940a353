from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from dmlconf.catalogue.loader import operator_names
from website.hooks import foreign_resources, linked_operators, site_markdown

ROOT: Final = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("link", "place", "expected"),
    [
        ("[x](../README.md#commands)", "gating-ci.md", "[x](index.md#commands)"),
        ("[x](../../CHANGELOG.md)", "decisions/0001-a.md", "[x](../changes.md)"),
        ("[x](docs/first-case.md)", "index.md", "[x](first-case.md)"),
        ("[x](resample3.md)", "operators/resample2.md", "[x](resample3.md)"),
        ("[profile](../schemas/profiles)", "certification.md", "profile (`schemas/profiles`)"),
        ("[`mkdocs.yml`](../mkdocs.yml)", "backends.md", "`mkdocs.yml`"),
        ("[x](https://example.com/a.md)", "backends.md", "[x](https://example.com/a.md)"),
        ("[x](#directml)", "backends.md", "[x](#directml)"),
    ],
)
def test_links_lead_to_where_the_site_has_their_page(link: str, place: str, expected: str) -> None:
    assert site_markdown(link, place) == expected


def test_links_to_files_that_do_not_exist_stay_for_the_strict_build_to_find() -> None:
    assert site_markdown("[x](../absent.md)", "backends.md") == "[x](../absent.md)"


def test_files_of_blocks_become_their_titles() -> None:
    page = site_markdown("```yaml tile.yaml\noperator: TILE\n```\n", "first-case.md")
    assert page == '```yaml title="tile.yaml"\noperator: TILE\n```\n'


def test_every_operator_of_the_table_has_a_link_to_its_page() -> None:
    page = linked_operators((ROOT / "docs" / "operators.md").read_text("utf-8"))
    links = re.findall(r"^\| \[(\w+)\]\(operators/(\w+)\.md\)", page, re.M)
    assert links == [(name, name.lower()) for name in operator_names()]


@pytest.mark.parametrize(
    "element",
    [
        '<script src="https://cdn.example.com/a.js"></script>',
        '<link rel="stylesheet" href="//fonts.example.com/css">',
        '<img alt="" src="http://example.com/a.png">',
        '<iframe src="https://example.com"></iframe>',
    ],
)
def test_reports_what_a_browser_would_load_from_another_host(element: str) -> None:
    assert len(foreign_resources(f"<p>text</p>{element}")) == 1


def test_permits_own_resources_and_links_to_other_hosts() -> None:
    page = (
        '<link rel="stylesheet" href="assets/a.css"><script src="../a.js"></script>'
        '<link rel="canonical" href="https://example.com/"><a href="https://example.com">x</a>'
    )
    assert foreign_resources(page) == []
