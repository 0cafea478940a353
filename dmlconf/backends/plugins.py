"""Find installed plugins: entry points of distributions, each a function that creates a backend."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dmlconf.backends.errors import AmbiguousBackendError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["ENTRY_POINT_GROUP", "Plugin", "installed_plugins", "require_one", "some_installed"]

ENTRY_POINT_GROUP: Final = "dmlconf.backends"
"""An entry point in this group names a function that takes the text of a backend's options and
returns a `Backend`.
"""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point of an installed distribution.

    Attributes:
        distribution: name and version of what was installed, such as `acme-dml 1.2`.
        function: where the function is, such as `acme.backend:create`.
        load: imports the function and returns it.
    """

    name: str
    distribution: str
    function: str
    load: Callable[[], Any]

    def __str__(self) -> str:
        return f"{self.distribution} ({self.function})"


def installed_plugins() -> Mapping[str, tuple[Plugin, ...]]:
    """Return the plugins by name; those of the same name are in the order of `sys.path`.

    A distribution's function counts once, even if it is found twice.
    """
    from importlib.metadata import entry_points

    plugins: dict[str, dict[tuple[str, str], Plugin]] = {}
    for point in entry_points(group=ENTRY_POINT_GROUP):
        plugin = Plugin(point.name, _distribution(point), point.value, point.load)
        same_name = plugins.setdefault(point.name, {})
        same_name.setdefault((plugin.distribution, plugin.function), plugin)
    return {name: tuple(same_name.values()) for name, same_name in plugins.items()}


def require_one(name: str, plugins: Iterable[Plugin], *, built_in: bool = False) -> None:
    """Check that at most one backend has a name.

    Args:
        plugins: the installed plugins of that name.
        built_in: whether dmlconf itself has a backend of that name.

    Raises:
        AmbiguousBackendError: several backends have the name.
    """
    owners = [*(["dmlconf itself"] if built_in else []), *map(str, plugins)]
    if len(owners) > 1:
        raise AmbiguousBackendError(name, owners)


@cache
def some_installed() -> bool:
    """Return whether any distribution's `entry_points.txt` has the text `dmlconf.backends`.

    This avoids the slow import of `importlib.metadata`. Plugins in archives are not found.
    """
    group = ENTRY_POINT_GROUP.encode()
    for folder in sys.path:
        try:
            names = [each.name for each in Path(folder).iterdir()]
        except OSError:  # An archive, or a folder that does not exist.
            continue
        for name in names:
            if name.endswith((".dist-info", ".egg-info")):
                with suppress(OSError):
                    if group in Path(folder, name, "entry_points.txt").read_bytes():
                        return True
    return False


def _distribution(point: EntryPoint) -> str:
    metadata = point.dist.metadata if point.dist is not None else None
    name = metadata["Name"] if metadata is not None and "Name" in metadata else "a distribution"
    version = metadata["Version"] if metadata is not None and "Version" in metadata else ""
    return f"{name} {version}".strip()
