"""Playwright's `expect`; Playwright is imported when it is first called, since that takes long."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["expect"]

if TYPE_CHECKING:
    from playwright.sync_api import expect
else:

    def expect(*arguments: Any) -> Any:
        from playwright.sync_api import expect

        return expect(*arguments)
