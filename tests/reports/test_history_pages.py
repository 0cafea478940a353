"""Pages of a history name what changed, link to pages that exist, and show markup as text.

The tested code is in `dmlconf/reports/history/site.py`, `dmlconf/reports/history/feed.py`,
`dmlconf/reports/templates/history/`, `dmlconf/history/overview.py`, `dmlconf/cli/output/site.py`
and `dmlconf/cli/commands/results/history.py`.
"""

from __future__ import annotations

import re
import shutil
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin

import pytest

from dmlconf.cases.handles import longest_handle
from dmlconf.cli.output.files import OutputError
from dmlconf.cli.output.site import write_site
from dmlconf.history.adding import add
from dmlconf.history.database import opened
from dmlconf.history.overview import Overview, news_of, overview_of
from dmlconf.history.timeline import Timeline
from dmlconf.reports.history.site import Site
from dmlconf.run_log.log import RunLog
from tests.cli.process import dmlconf, dmlconf_here
from tests.history.runs import night, verdict

HOSTILE = "tile/<img src=x onerror=alert(1)></script><script>alert(2)</script>\x1b[31m\u202e'\"&"
A, B, SHAKY = "tile/matrix/a", "gemm/documented/b", "top_k/matrix/shaky"

ATOM = "{http://www.w3.org/2005/Atom}"
"""The namespace of the elements of a feed."""


def overview(folder: Path, logs: list[RunLog]) -> Overview:
    """Return what pages show of a new history of these runs, `h.sqlite` in the folder."""
    with opened(str(folder / "h.sqlite"), create=True) as history:
        for log in logs:
            with history.writing() as connection:
                add(connection, log)
        with history.reading() as connection:
            return overview_of(Timeline(connection))


def nights(count: int = 8) -> list[RunLog]:
    """Return logs of nights with five cases each; the driver changes in the last night."""
    return [
        night(
            n,
            [
                verdict(A, fails=n == count - 1, message=HOSTILE),
                verdict(B, fails=n < count - 1),
                verdict(SHAKY, fails=n in (1, 3, 5)),
                verdict(HOSTILE, fails=n == count - 1, message=HOSTILE),
                verdict("relu/matrix/quiet"),
            ],
            driver="2.0" if n == count - 1 else "1.0",
        )
        for n in range(count)
    ]


class Page(HTMLParser):
    """The links, elements and text of a page."""

    def __init__(self, content: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.elements: set[str] = set()
        self.text = ""
        self.feed(content)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        assert not [name for name, _ in attrs if name.startswith("on") or name == "style"]

    def handle_data(self, data: str) -> None:
        self.text += data


def pages(site: Site) -> dict[str, Page]:
    found = {}
    for path in site.paths():
        content = site.content(path)
        assert content is not None
        if path.endswith(".html"):
            found[path] = Page(content)
    return found


def test_front_page_begins_with_the_latest_changes(tmp_path: Path) -> None:
    text = pages(Site(overview(tmp_path, nights())))["index.html"].text
    assert "Run #8 of 2026-01-08 02:00: 2 cases began to fail, 1 case no longer fails" in text
    began, again = text.index("Began to fail (2)"), text.index("No longer fail (1)")
    assert began < text.index(A) < again < text.index(B)
    assert "changed with it: driver 1.0 to 2.0" in text
    assert text.index(SHAKY) > text.index("Flaky cases", again)
    assert "failed in 3 of 8 runs (37.5%)" in text


@pytest.mark.parametrize(("case", "style"), [(A, "failed"), ("relu/matrix/quiet", "passed")])
def test_banner_of_a_first_run_says_whether_it_failed(
    tmp_path: Path, case: str, style: str
) -> None:
    page = Site(overview(tmp_path, [night(0, [verdict(case, fails=case == A)])])).content(
        "index.html"
    )
    assert page is not None
    assert f'<h1 class="banner {style}">Run #1 of ' in page


def test_links_lead_to_pages_and_nothing_is_loaded(tmp_path: Path) -> None:
    site = Site(overview(tmp_path, nights()))
    paths = set(site.paths())
    assert sum(len(page.links) for page in pages(site).values()) > len(paths)
    for path, page in pages(site).items():
        for link in page.links:
            target = urljoin(path, link) if not link.startswith("#") else path
            assert target in paths, (path, link)
        assert not page.elements & {"script", "img", "iframe", "object", "form", "style"}


def test_markup_of_a_history_is_shown_as_text(tmp_path: Path) -> None:
    logs = [
        night(n, [verdict(HOSTILE, fails=n == 1, message=HOSTILE)], adapter=HOSTILE, driver=HOSTILE)
        for n in range(2)
    ]
    site = Site(overview(tmp_path, logs))
    for path in site.paths():
        content = site.content(path)
        assert content is not None
        assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", content), path
        assert "<img" not in content
    shown = pages(site)
    assert "<img src=x onerror=alert(1)>" in shown["index.html"].text
    assert max(path.count("/") for path in shown) == 1  # No `/` of a case is part of a path.


def test_page_of_a_case_lists_each_change(tmp_path: Path) -> None:
    site = Site(overview(tmp_path, nights()))
    page = pages(site)[f"cases/{longest_handle(SHAKY)}.html"]
    assert "Failed in 3 of 8 runs." in page.text
    assert page.text.count("Changed with it:") == 6  # Three failures begin, and three end.
    assert site.content("cases/absent.html") is None


def test_feed_has_regressions_under_lasting_identifiers(tmp_path: Path) -> None:
    def entries(folder: Path, logs: list[RunLog], address: str) -> dict[str, tuple[str, str]]:
        folder.mkdir()
        feed = Site(overview(folder, logs), address).content("feed.xml")
        assert feed is not None
        root = ElementTree.fromstring(feed)
        assert {root.findtext(f"{ATOM}{n}") is None for n in ("id", "title", "updated")} == {False}
        return {
            str(entry.findtext(f"{ATOM}id")): (
                str(entry.findtext(f"{ATOM}updated")),
                entry.find(f"{ATOM}link").get("href", ""),  # type: ignore[union-attr]
            )
            for entry in root.iter(f"{ATOM}entry")
        }

    first = entries(tmp_path / "one", nights(), "https://example.org/h/")
    assert len(first) == 2
    handle = longest_handle(A)
    assert ("2026-01-08T02:00:00+00:00", f"https://example.org/h/cases/{handle}.html") in (
        first.values()
    )
    more = [*nights(), night(9, [verdict(B, fails=True)], driver="2.0", selected=5)]
    assert set(first) < set(entries(tmp_path / "two", more, ""))


def test_news_have_the_failures_of_all_shards(tmp_path: Path) -> None:
    def shard(day: int, number: int, case: str, fails: bool) -> RunLog:
        return night(
            day,
            [verdict(case, fails=fails)],
            shard={"number": number, "count": 2, "planned": 2},
        )

    logs = [shard(0, 1, A, False), shard(1, 2, B, False), shard(2, 1, A, True)]
    [news] = overview(tmp_path, [*logs, shard(3, 2, B, True)]).news
    assert {each.case for each in news.regressed} == {A, B}


def test_news_without_pages_equal_news_of_pages(tmp_path: Path) -> None:
    of_pages = overview(tmp_path, nights()).news
    with opened(str(tmp_path / "h.sqlite")) as history, history.reading() as connection:
        alone = news_of(Timeline(connection))
    assert [(each.regressed, each.mended, each.flaky) for each in alone] == [
        (each.regressed, each.mended, each.flaky) for each in of_pages
    ]
    assert {each.case for each in alone[0].regressed} == {A, HOSTILE}


def test_limited_site_has_pages_of_failing_cases_first(tmp_path: Path) -> None:
    read = overview(tmp_path, nights())
    own = {path for path in Site(read, most_cases=2).paths() if path.startswith("cases/")}
    assert own == {f"cases/{longest_handle(case)}.html" for case in (A, HOSTILE)}


def test_incompletely_written_site_has_no_index_page(tmp_path: Path) -> None:
    site = Site(overview(tmp_path, nights()))
    folder = tmp_path / "out"
    for path in {*site.paths()} - {"regressions.html", "index.html"}:
        (folder / path).mkdir(parents=True)  # No other page can be written.
    with pytest.raises(OutputError):
        write_site(folder, site)
    assert (folder / "regressions.html").is_file()
    assert not (folder / "index.html").exists()


@pytest.mark.slow
def test_site_replaces_only_pages_of_an_earlier_site(tmp_path: Path) -> None:
    overview(tmp_path, nights())
    database = ("--database", tmp_path / "h.sqlite")

    def site(*options: str) -> tuple[int, str]:
        done = dmlconf_here(tmp_path, "history", "site", "-o", "out", *options, *database)
        return done.returncode, done.stdout + done.stderr

    # Three pages of all runs, and those of 2 environments, 3 operators and 4 cases that failed.
    assert site() == (0, "out/index.html: 12 pages of 8 runs\n")
    stale = tmp_path / "out" / "cases" / "stale.html"
    shutil.copy(tmp_path / "out" / "index.html", stale)
    foreign = stale.with_name("foreign.html")
    foreign.write_text("mine")
    assert site("--address", "https://example.org/h")[0] == 0
    assert not stale.exists()
    assert foreign.read_text() == "mine"
    assert "https://example.org/h/cases/" in (tmp_path / "out" / "feed.xml").read_text("utf-8")
    (tmp_path / "out" / "index.html").unlink()  # As after an interrupt.
    assert site()[0] == 0


@pytest.mark.slow
def test_two_processes_write_the_same_site_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = Site(overview(tmp_path, nights()))
    replace, glob = Path.replace, Path.glob

    def write_as_well() -> None:
        monkeypatch.setattr(Path, "replace", replace)
        monkeypatch.setattr(Path, "glob", glob)
        other = dmlconf(tmp_path, "history", "site", "-o", "out", "--database", "h.sqlite")
        assert other.returncode == 0, other.stderr

    def other_first(path: Path, target: Path) -> Path:
        write_as_well()
        return replace(path, target)

    def other_in_between(path: Path, pattern: str) -> list[Path]:
        found = [*glob(path, pattern)]
        if found and path.name == "cases":
            write_as_well()
        return found

    monkeypatch.setattr(Path, "replace", other_first)
    assert write_site(tmp_path / "out", site) == 12
    shutil.copy(tmp_path / "out" / "index.html", tmp_path / "out" / "cases" / "stale.html")
    monkeypatch.setattr(Path, "glob", other_in_between)
    assert write_site(tmp_path / "out", site) == 12
    assert not [*(tmp_path / "out").rglob("*.tmp")]


def test_folder_with_a_foreign_index_page_is_unchanged(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "out"
    write_site(folder, Site(overview(tmp_path, nights())))
    (folder / "index.html").write_text("mine")

    def contents() -> dict[Path, str]:
        return {file: file.read_text("utf-8") for file in folder.rglob("*.*")}

    before = contents()
    options = ("-o", "out", "--database", tmp_path / "h.sqlite")
    done = dmlconf_here(tmp_path, "history", "site", *options, "--address", "https://example.org/h")
    assert done.returncode == 2
    assert "has other files" in done.stdout + done.stderr
    assert contents() == before


def test_an_address_without_a_scheme_is_refused(tmp_path: Path) -> None:
    overview(tmp_path, nights())
    options = ("-o", "out", "--database", tmp_path / "h.sqlite", "--address", "example.org")
    done = dmlconf_here(tmp_path, "history", "site", *options)
    assert done.returncode == 2
    assert "is not an address such as" in done.stderr
