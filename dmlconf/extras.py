"""The command that installs an extra of dmlconf, from where dmlconf itself was installed."""

from __future__ import annotations

import json
import shlex
import sys
from contextlib import suppress
from pathlib import Path

__all__ = ["install_command", "install_command_from"]


def install_command(extra: str) -> str:
    """Return the command that installs an extra, such as `pip install '.[certify]'`.

    The command never names `dmlconf` alone: a package index may have another package of that name.
    """
    # Importing this takes long, and only messages need it.
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        origin = distribution("dmlconf").read_text("direct_url.json")
    except PackageNotFoundError:
        origin = None
    return install_command_from(origin, extra)


def install_command_from(origin: str | None, extra: str) -> str:
    """Return the command that adds an extra to an installation of dmlconf.

    `origin` is the text of the installation's `direct_url.json` (PEP 610). If `origin` is None or
    names no existing path, the command ends with `in a checkout of dmlconf`.
    """
    source = None if origin is None else _source(origin)
    if source is None:
        return f"pip install {_quoted(f'.[{extra}]')} in a checkout of dmlconf"
    path, is_editable = source
    here = str(path)
    with suppress(OSError):  # The working folder was removed.
        here = "." if path == Path.cwd() else here
    return f"pip install {'-e ' if is_editable else ''}{_quoted(f'{here}[{extra}]')}"


def _source(origin: str) -> tuple[Path, bool] | None:
    """Return the checkout or wheel, and whether it is editable; None if it is unknown or gone."""
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        record = json.loads(origin)
        url = urlsplit(record["url"])
        path = Path(url2pathname(url.path))
        is_editable = bool(record.get("dir_info", {}).get("editable"))
        if url.scheme != "file" or not path.exists():
            return None
    except (ValueError, TypeError, KeyError, AttributeError, OSError):
        return None
    return path, is_editable


def _quoted(text: str) -> str:
    return f'"{text}"' if sys.platform == "win32" else shlex.quote(text)
