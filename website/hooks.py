"""Events of MkDocs: pages from the catalogue, links out of `docs/`, nothing from other hosts.

Pages of `docs/` are written to be read in the repository as well. What differs on the site is
changed here while it is built.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from dmlconf.catalogue.families import families
from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.cli.pages.case_counts import all_case_counts
from dmlconf.reports.operators import operator_page
from dmlconf.strength.drivers.catalogue import driver_defects
from website.coverage import coverage_section, suite_coverage, suite_plan
from website.strength import kept_weaknesses, strength_section

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

__all__ = [
    "REPOSITORY_PAGES",
    "breakable_names",
    "edit_address",
    "folded_lists",
    "foreign_resources",
    "linked_operators",
    "on_config",
    "on_files",
    "on_page_markdown",
    "on_post_page",
    "site_markdown",
    "with_operators",
]

_ROOT: Final = Path(__file__).resolve().parent.parent

REPOSITORY_PAGES: Final = {
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Pages of the repository outside `docs/`, with their places on the site."""

_PLACES: Final = {"README.md": "index.md", **REPOSITORY_PAGES}
"""Where links lead: the site has a home page of its own in place of the README."""

MOST_ITEMS: Final = 20
"""Items of a list that a page shows; a longer one is folded away."""

_LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
OPERATOR_BOOST: Final = 4
"""How much more a word counts in the search on the page of an operator than elsewhere."""

_LIST: Final = re.compile(r"(?:^- .*\n?(?:^  .*\n?)*)+", re.M)
_FILE_OF_BLOCK: Final = re.compile(r"^```(\w+) (\S+\.\w+)$", re.M)
_ROW: Final = re.compile(r"^\| ([A-Z][A-Z0-9_]*)(?= [(|])", re.M)
_RESOURCES: Final = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "link": "href",
}
_NAME: Final = re.compile(r"(?<=>)\s*[A-Z0-9]+_[A-Z0-9_]+\s*(?=<)")
_MERE_LINKS: Final = frozenset({"canonical", "prev", "next", "alternate"})


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Link each page to its source, and add the pages of operators to the navigation."""
    config.edit_uri = config.edit_uri or edit_address(config.repo_url or "")
    config.nav = with_operators(config.nav or [])
    return config


def edit_address(repository: str) -> str | None:
    """Return where the pages' sources are below the repository's address; None if unknown."""
    return "edit/main/docs/" if repository else None


def with_operators(navigation: Sequence[Any]) -> list[Any]:
    """Return the navigation with the pages of operators, by family, under `Operators`."""
    of = families()
    by_family: dict[str, list[str]] = {}
    for name in operator_names():
        by_family.setdefault(of[name], []).append(f"operators/{name.lower()}.md")
    pages = [{family: by_family[family]} for family in sorted(by_family)]
    return [
        {"Operators": [*entry["Operators"], *pages]}
        if isinstance(entry, dict) and "Operators" in entry
        else entry
        for entry in navigation
    ]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository and a page for each operator."""
    from mkdocs.structure.files import File

    for source, place in REPOSITORY_PAGES.items():
        content = (_ROOT / source).read_text("utf-8")
        files.append(File.generated(config, place, content=content))
    style = (Path(__file__).parent / "site.css").read_text("utf-8")
    files.append(File.generated(config, "assets/site.css", content=style))
    counts = all_case_counts(suite_plan())
    concerned = Counter(name for defect in driver_defects() for name in defect.operators)
    for name in operator_names():
        content = "\n".join(
            (
                operator_page(operator(name), counts[name]),
                coverage_section(suite_coverage()[name]),
                strength_section(name, kept_weaknesses(), concerned[name]),
            )
        )
        files.append(File.generated(config, f"operators/{name.lower()}.md", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page as the site has it."""
    place = page.file.src_uri
    if place == "operators.md":
        markdown = linked_operators(markdown)
    markdown = folded_lists(site_markdown(markdown, place, config.repo_url or ""))
    if place == "index.md":
        page.meta["hide"] = ["navigation", "toc"]
    if place.startswith("operators/"):
        page.meta["search"] = {"boost": OPERATOR_BOOST}
        markdown += "\n[All operators](../operators.md)\n"
    return markdown


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Return the page, which must need nothing from other hosts.

    Raises:
        PluginError: it does.
    """
    from mkdocs.exceptions import PluginError

    if foreign := foreign_resources(output):
        raise PluginError(f"{page.file.src_uri} would load {', '.join(foreign)}: keep it in docs/")
    output = output.replace('role="dialog">', 'role="dialog" aria-label="Search">', 1)
    return breakable_names(output)


def breakable_names(html: str) -> str:
    """Return a page whose names of operators may break after an underscore, as on a telephone."""
    return _NAME.sub(lambda name: name[0].replace("_", "_<wbr>"), html)


def folded_lists(markdown: str) -> str:
    """Return a page whose long lists, such as those that commands write, are folded away."""

    def fold(match: re.Match[str]) -> str:
        items = match[0].strip("\n")
        count = len(re.findall(r"^- ", items, re.M))
        if count <= MOST_ITEMS:
            return match[0]
        opening = f'<details markdown="1"><summary>{count:,} entries</summary>'
        return f"{opening}\n\n{items}\n\n</details>\n"

    return _LIST.sub(fold, markdown)


def site_markdown(markdown: str, place: str, repository: str = "") -> str:
    """Return a page whose links and blocks of code are in the form of the site.

    A link to a file that the site does not have leads to the repository, or becomes text with the
    file's path if the repository's address is unknown. Links that lead nowhere stay as they are, so
    that the strict build fails.

    Args:
        markdown: the page as the repository has it.
        place: its place on the site.
        repository: its address; empty if unknown.
    """
    sources = {site: source for source, site in REPOSITORY_PAGES.items()}
    source = sources.get(place, f"docs/{place}")
    markdown = _FILE_OF_BLOCK.sub(r'```\1 title="\2"', markdown)
    folder = posixpath.dirname(source)
    return _LINK.sub(lambda link: _link(link, folder, place, repository), markdown)


def linked_operators(markdown: str) -> str:
    """Return the table of operators with a link to the page of each."""
    return _ROW.sub(lambda row: f"| [{row[1]}](operators/{row[1].lower()}.md)", markdown)


def _link(link: re.Match[str], folder: str, place: str, repository: str) -> str:
    text, target = link.groups()
    path, hash_, anchor = target.partition("#")
    if not path or urlsplit(target).scheme:
        return link[0]
    file = posixpath.normpath(posixpath.join(folder, path))
    if file in _PLACES or file.startswith("docs/"):
        site = _PLACES.get(file, file.removeprefix("docs/"))
        return f"[{text}]({posixpath.relpath(site, posixpath.dirname(place))}{hash_}{anchor})"
    if not (_ROOT / file).exists():
        return link[0]
    if repository:
        return f"[{text}]({repository.rstrip('/')}/blob/HEAD/{file}{hash_}{anchor})"
    return text if text.strip("`") == file else f"{text} (`{file}`)"


def foreign_resources(html: str) -> list[str]:
    """Return the addresses on other hosts that a browser would load with the page."""
    parser = _Resources()
    parser.feed(html)
    return parser.foreign


class _Resources(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        address = values.get(_RESOURCES.get(tag, "")) or ""
        if urlsplit(address).netloc and not _MERE_LINKS & set((values.get("rel") or "").split()):
            self.foreign.append(address)
