"""Put what a wheel's suite holds, checked, into the wheel (docs/decisions/0018)."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CheckedSuiteHook(BuildHookInterface):
    """Checks the case files of the tree with the tree's own dmlconf."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the archive to a wheel; an editable one uses the checkout, whose files change."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from dmlconf.cases.loading.bundle import checked_suite

        self._folder = Path(tempfile.mkdtemp(prefix="dmlconf-build-"))
        archive = self._folder / "checked.archive"
        archive.write_bytes(checked_suite())
        build_data["force_include"][str(archive)] = "dmlconf/bundled/checked.archive"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was written beside the wheel."""
        if version != "editable":
            shutil.rmtree(self._folder)
