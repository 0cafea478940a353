"""Playwright's `expect`; Playwright is imported when it is first called, since that takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

__all__ = ["expect"]

_MILLISECONDS: Final = 60_000
"""How long to wait for what is expected; on a busy machine, Playwright's own 5 s are too few."""

if TYPE_CHECKING:
    from playwright.sync_api import expect
else:

    def expect(*arguments: Any) -> Any:
        from playwright.sync_api import expect

        expect.set_options(timeout=_MILLISECONDS)
        return expect(*arguments)
