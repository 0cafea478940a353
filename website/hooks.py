"""Events of MkDocs: pages from the catalogue, links out of `docs/`, nothing from other hosts.

Pages of `docs/` are written to be read in the repository as well. What differs on the site is
changed here while it is built.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.cli.operator_page import operator_page
from dmlconf.strength.drivers.catalogue import driver_defects
from website.coverage import coverage_section, suite_coverage
from website.strength import kept_weaknesses, strength_section

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

__all__ = [
    "REPOSITORY_PAGES",
    "foreign_resources",
    "linked_operators",
    "on_files",
    "on_page_markdown",
    "on_post_page",
    "site_markdown",
]

_ROOT: Final = Path(__file__).resolve().parent.parent

REPOSITORY_PAGES: Final = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
    "benchmarks/README.md": "benchmarks.md",
}
"""Pages of the repository outside `docs/`, with their places on the site."""

_LINK: Final = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")
_FILE_OF_BLOCK: Final = re.compile(r"^```(\w+) (\S+\.\w+)$", re.M)
_ROW: Final = re.compile(r"^\| ([A-Z][A-Z0-9_]*)(?= [(|])", re.M)
_RESOURCES: Final = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "link": "href",
}
_MERE_LINKS: Final = frozenset({"canonical", "prev", "next", "alternate"})


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the repository and a page for each operator."""
    from mkdocs.structure.files import File

    for source, place in REPOSITORY_PAGES.items():
        content = (_ROOT / source).read_text("utf-8")
        files.append(File.generated(config, place, content=content))
    concerned = Counter(name for defect in driver_defects() for name in defect.operators)
    for name in operator_names():
        content = "\n".join(
            (
                operator_page(operator(name)),
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
    markdown = site_markdown(markdown, place)
    if place.startswith("operators/"):
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
    return output


def site_markdown(markdown: str, place: str) -> str:
    """Return a page whose links and blocks of code are in the form of the site.

    A link to a file that the site does not have becomes the file's path. Links that lead nowhere
    stay as they are, so that the strict build fails.

    Args:
        markdown: the page as the repository has it.
        place: its place on the site.
    """
    sources = {site: source for source, site in REPOSITORY_PAGES.items()}
    source = sources.get(place, f"docs/{place}")
    markdown = _FILE_OF_BLOCK.sub(r'```\1 title="\2"', markdown)
    return _LINK.sub(lambda link: _link(link, posixpath.dirname(source), place), markdown)


def linked_operators(markdown: str) -> str:
    """Return the table of operators with a link to the page of each."""
    return _ROW.sub(lambda row: f"| [{row[1]}](operators/{row[1].lower()}.md)", markdown)


def _link(link: re.Match[str], folder: str, place: str) -> str:
    text, target = link.groups()
    path, hash_, anchor = target.partition("#")
    if not path or urlsplit(target).scheme:
        return link[0]
    file = posixpath.normpath(posixpath.join(folder, path))
    if file in REPOSITORY_PAGES or file.startswith("docs/"):
        site = REPOSITORY_PAGES.get(file, file.removeprefix("docs/"))
        return f"[{text}]({posixpath.relpath(site, posixpath.dirname(place))}{hash_}{anchor})"
    if not (_ROOT / file).exists():
        return link[0]
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
