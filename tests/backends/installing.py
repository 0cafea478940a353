"""Install plugins into a folder as `pip` does; Python finds them if the folder is on its path."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # Plugins import this module in worker processes, which need no pytest.
    import pytest

__all__ = ["install_plugin", "plugin"]


def plugin(directory: Path, monkeypatch: pytest.MonkeyPatch, name: str, code: str) -> Path:
    """Install a plugin for this test and the processes it starts; return the plugin's folder."""
    folder = directory / "plugin"
    install_plugin(folder, name, code=code)
    monkeypatch.syspath_prepend(folder)
    return folder


def install_plugin(
    folder: Path,
    name: str,
    *,
    module: str | None = None,
    code: str | None = None,
    distribution: str | None = None,
    version: str = "1.0",
) -> None:
    """Write into a folder a distribution whose module registers a backend.

    Module and distribution have the backend's name by default. `code` is None if the module exists.
    """
    module = module or name
    distribution = distribution or name
    information = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
    information.mkdir(parents=True)
    metadata = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    (information / "METADATA").write_text(metadata, encoding="utf-8")
    entry = f"[dmlconf.backends]\n{name} = {module}:create\n"
    (information / "entry_points.txt").write_text(entry, encoding="utf-8")
    if code is not None:
        (folder / f"{module}.py").write_text(code, encoding="utf-8")
