"""Write the pages of a history into a folder."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dmlconf.cli.output.files import OutputError
from dmlconf.documents.problems import printable
from dmlconf.documents.whole_files import write_whole

if TYPE_CHECKING:
    from dmlconf.reports.history.site import Site

__all__ = ["prepared_folder", "write_site"]

_MARK: Final = b'<meta name="generator" content="dmlconf history">'
"""A tag that only the pages of a site have."""

_FIRST: Final = "regressions.html"
"""The page that is written first; its mark identifies a site whose writing was interrupted."""

_LAST: Final = "index.html"

_FOLDERS: Final = ("cases", "environments", "operators")


def prepared_folder(folder: Path) -> None:
    """Create a missing folder; refuse a folder that is not empty and has no earlier site.

    Files and folders whose names begin with a dot do not count.

    Raises:
        click.UsageError: the folder is refused, or cannot be created or read.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not _is_site(folder) and any(each.name[:1] != "." for each in folder.iterdir()):
            message = f"-o {folder} has other files; name an empty folder or an earlier site"
            raise click.UsageError(printable(message))
    except FileExistsError as error:
        raise click.UsageError(printable(f"-o {folder} is a file; name a folder")) from error
    except OSError as error:
        raise click.UsageError(printable(f"-o {folder}: {error.strerror}")) from error


def _is_site(folder: Path) -> bool:
    """Return whether a folder has an earlier site, or the first pages of one."""
    for name in _LAST, _FIRST:
        if (folder / name).is_file():
            return _is_page(folder / name)
    return False


def _is_page(file: Path) -> bool:
    with file.open("rb") as content:
        return _MARK in content.read(4096)


def write_site(folder: Path, site: Site) -> int:
    """Write the site, and return how many pages it has.

    Pages of an earlier site that this site lacks are removed; other files stay.
    `index.html` is written last, so that all pages to which it links exist.

    Raises:
        OutputError: a file cannot be written.
    """
    paths = sorted(site.paths(), key=lambda path: (path == _LAST, path != _FIRST))
    try:
        for path in paths:
            content = site.content(path)
            assert content is not None
            file = folder / path
            file.parent.mkdir(exist_ok=True)
            write_whole(file, content)
        current = {folder / path for path in paths}
        for name in _FOLDERS:
            for file in (folder / name).glob("*.html"):
                with suppress(FileNotFoundError):  # Another process has removed it.
                    if file not in current and _is_page(file):
                        file.unlink()
    except OSError as error:
        raise OutputError(printable(f"-o {folder}: {error.strerror or error}")) from error
    return sum(path.endswith(".html") for path in paths)
