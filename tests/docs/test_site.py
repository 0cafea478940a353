"""The documentation site has working links and every page, and loads nothing from other hosts.

The tested code is in `website/hooks.py`, `website/coverage.py`, `website/strength.py`, `mkdocs.yml`
and `dmlconf/catalogue/families.py`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from dmlconf.catalogue.families import families
from dmlconf.catalogue.graph import GRAPHS
from dmlconf.catalogue.loader import operator_names
from dmlconf.coverage.measure import OperatorCoverage, Part
from tests.each import for_each
from website.coverage import coverage_section
from website.hooks import (
    breakable_names,
    edit_address,
    folded_lists,
    foreign_resources,
    linked_operators,
    site_markdown,
    with_operators,
)
from website.strength import kept_weaknesses, strength_section, weaknesses

ROOT: Final = Path(__file__).resolve().parents[2]
MKDOCS: Final = (ROOT / "mkdocs.yml").read_text("utf-8")


@pytest.mark.parametrize(
    ("link", "page", "expected"),
    [
        ("[x](../README.md#commands)", "gating-ci.md", "[x](index.md#commands)"),
        ("[x](../../CHANGELOG.md)", "decisions/0001-a.md", "[x](../changes.md)"),
        ("[x](docs/first-case.md)", "changes.md", "[x](first-case.md)"),
        ("[x](resample3.md)", "operators/resample2.md", "[x](resample3.md)"),
        ("[profile](../schemas/profiles)", "certification.md", "profile (`schemas/profiles`)"),
        ("[`mkdocs.yml`](../mkdocs.yml)", "backends.md", "`mkdocs.yml`"),
        ("[x](https://example.com/a.md)", "backends.md", "[x](https://example.com/a.md)"),
        ("[x](#directml)", "backends.md", "[x](#directml)"),
    ],
)
def test_links_between_files_become_links_between_pages(
    link: str, page: str, expected: str
) -> None:
    assert site_markdown(link, page) == expected


def test_links_to_folders_lead_to_a_known_repository() -> None:
    address = "https://example.com/o/dmlconf"
    page = site_markdown("[profile](../schemas/profiles)", "certification.md", address)
    assert page == f"[profile]({address}/blob/HEAD/schemas/profiles)"


def test_pages_have_edit_links_only_if_the_repository_is_known() -> None:
    assert edit_address("") is None
    assert edit_address("https://example.com/o/dmlconf") == "edit/main/docs/"


def test_the_address_of_the_repository_is_one_setting() -> None:
    settings = re.findall(r"^\s*(?:repo_url|repo_name|edit_uri\w*|site_url)\b", MKDOCS, re.M)
    assert settings == ["repo_url"]


def test_the_navigation_has_every_operator_in_its_family() -> None:
    nav = with_operators([{"Home": "index.md"}, {"Operators": ["operators.md"]}])
    assert nav[0] == {"Home": "index.md"}
    assert nav[1]["Operators"][0] == "operators.md"
    by_family = {name: pages for each in nav[1]["Operators"][1:] for name, pages in each.items()}
    assert re.search(r"^  - Operators:", MKDOCS, re.M)
    assert "operators/convolution.md" in by_family["Convolution and pooling"]
    listed = sorted((page, family) for family, pages in by_family.items() for page in pages)
    family_of = families()
    assert listed == sorted(
        (f"operators/{name.lower()}.md", family_of[name]) for name in operator_names()
    )


def test_operator_name_alone_between_tags_may_break() -> None:
    heading = '<h1 id="TOP_K1">TOP_K1<a class="A_B" href="#TOP_K1">x</a></h1><p>see TOP_K1 a_b</p>'
    assert breakable_names(heading) == heading.replace(">TOP_K1<", ">TOP_<wbr>K1<")


def test_lists_of_more_than_20_items_are_folded() -> None:
    short, long = ("".join(f"- item {i}\n  more\n" for i in range(n)) for n in (20, 21))
    assert folded_lists(f"text\n\n{short}\nend\n") == f"text\n\n{short}\nend\n"
    page = folded_lists(f"text\n\n{long}\nend\n")
    assert "<summary>21 entries</summary>\n\n- item 0\n  more\n- item 1\n" in page
    assert page.index("item 20") < page.index("</details>") < page.index("end")


def test_links_to_missing_files_are_unchanged() -> None:
    assert site_markdown("[x](../absent.md)", "backends.md") == "[x](../absent.md)"


def test_the_file_name_of_a_code_block_becomes_its_title() -> None:
    page = site_markdown("```yaml tile.yaml\noperator: TILE\n```\n", "first-case.md")
    assert page == '```yaml title="tile.yaml"\noperator: TILE\n```\n'


def test_every_operator_is_linked_to_its_page() -> None:
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
def test_resources_of_other_hosts_are_reported(element: str) -> None:
    assert len(foreign_resources(f"<p>text</p>{element}")) == 1


def test_own_resources_and_links_to_other_hosts_are_permitted() -> None:
    page = (
        '<link rel="stylesheet" href="assets/a.css"><script src="../a.js"></script>'
        '<link rel="canonical" href="https://example.com/"><a href="https://example.com">x</a>'
    )
    assert foreign_resources(page) == []


@for_each(sorted((ROOT / "docs").rglob("*.md")), name=lambda path: path.stem)
def test_the_navigation_has_every_page(page: Path) -> None:
    name = page.relative_to(ROOT / "docs").as_posix()
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:\n")[2]
    assert re.search(rf"[-:] {re.escape(name)}$", navigation, re.M), "add it to mkdocs.yml"


def test_section_on_coverage_names_missing_parts() -> None:
    cell, option = Part("support", "InputTensor FLOAT16"), Part("optional", "BiasTensor absent")
    row = OperatorCoverage("GEMM", total=1_200, recorded=7, parts={cell: 3, option: 0})
    section = coverage_section(row)
    assert "| cells of the tables of support | 1 | 1 | 100.0% |" in section
    assert "| optional fields, present and absent | 0 | 1 | 0.0% |" in section
    assert "| all | 1 | 2 | 50.0% |" in section
    assert "- optional BiasTensor absent" in section
    assert "InputTensor FLOAT16" not in section
    assert "7 of the 1,200 cases" in section


STRENGTH: Final = """\
# Strength of the suite

- By perturbation: 5 of 7.

## By perturbation

| 1% off | all operators |

- 4 ULP in FLOAT16: GEMM notices 10 of 13; not in gemm/a OutputTensor
- 1% off: RNN notices 38 of 39 (an excuse); not in rnn/b OutputSequenceTensor

## By driver defect

- GEMM: columns beyond 1024 are zero: no case of GEMM has rows of more than 1,024 elements

## Earlier figures

- whatever stands here
"""
"""A page like docs/strength.md, with weaknesses of GEMM and RNN."""


def test_section_on_strength_lists_unnoticed_mistakes() -> None:
    lists = weaknesses(STRENGTH)
    section = strength_section("GEMM", lists, 36)
    assert "- 4 ULP in FLOAT16: notices 10 of 13; not in gemm/a OutputTensor" in section
    assert "- columns beyond 1024 are zero: no case of GEMM has rows of more than" in section
    assert "Of 36 driver defects that concern the operator, it notices 35, but not:" in section
    assert "RNN" not in section
    assert "notices at least 99% of each kind." in strength_section("TILE", lists, 0)
    assert "driver" not in strength_section("TILE", lists, 0)
    assert "it notices all." in strength_section("RNN", lists, 7)


def test_a_list_of_weaknesses_in_another_form_is_refused() -> None:
    with pytest.raises(ValueError, match="not in the form of the list: - GEMM is weak"):
        weaknesses(STRENGTH.replace("- 4 ULP", "- GEMM is weak\n- 4 ULP"))


def test_stored_weaknesses_are_of_known_operators_or_graphs() -> None:
    perturbed, surviving = kept_weaknesses()
    named = {weakness.operator for weakness in (*perturbed, *surviving)}
    assert perturbed
    assert surviving
    assert named <= {*operator_names(), GRAPHS}
