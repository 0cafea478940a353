"""Fixtures for the tests that open pages in Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# Without Playwright, `pytest -m browser` selects nothing, and fails.
collect_ignore_glob = [] if find_spec("playwright") else ["test_*.py"]

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The Chromium of this system, rather than one that Playwright downloads."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    assert path is not None, f"install one of {', '.join(NAMES)}"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page that fails the test if its script fails, or if it loads anything besides itself."""
    problems: list[str] = []
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda m: problems.append(m.text) if m.type == "error" else None)
    page.on(
        "request",
        lambda request: None if request.is_navigation_request() else problems.append(request.url),
    )
    yield page
    page.close()
    assert problems == []
