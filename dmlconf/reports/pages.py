"""Self-contained HTML pages: template, style and script in one file that loads nothing else."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from dmlconf.verdicts.status import Status

__all__ = ["closing_style", "render_page"]

_TEMPLATES: Final = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class _Page:
    """The parts of a page's frame.

    Attributes:
        title: of the page.
        style: the style sheet.
        script: the script; empty for none.
        data: the script's data: JSON, compressed, in Base64; empty for none.
    """

    title: str
    style: Any
    script: Any
    data: str

    @property
    def style_source(self) -> str:
        """The only style that the content policy of the page permits."""
        return _source(str(self.style))

    @property
    def script_source(self) -> str:
        """The only script that the content policy of the page permits."""
        return _source(str(self.script)) if self.script else "'none'"


def render_page(
    template: str, title: str, values: Mapping[str, Any], data: object = None, *scripts: str
) -> str:
    """Return a page that works from a file, without a network, under a strict content policy.

    Args:
        template: the name of its template.
        title: of the page.
        values: of the template; everything is escaped.
        data: the script's data, as JSON values.
        scripts: the names of its script's files.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined
    )
    page = _Page(
        title=title,
        style=Markup(_status_style() + _read("page.css")),
        script=Markup("".join(map(_read, scripts))),
        data="" if data is None else _packed(data),
    )
    return environment.get_template(template).render({**values, "page": page}) + "\n"


def closing_style(sentence: str) -> str:
    """Return the class of a closing sentence: `FAILED: 3 of 20 cases ...` is failed."""
    return {"FAILED": "failed", "PASSED": "passed"}.get(sentence.partition(":")[0], "")


def _status_style() -> str:
    """Return the colours of statuses, and the rules that use them."""
    light, dark = (
        " ".join(f"--{status.css_class}: {status.traits.colors[at]};" for status in Status)
        for at in (0, 1)
    )
    names = [status.css_class for status in Status]
    texts = " ".join(f".{name} {{ color: var(--{name}); }}" for name in names)
    fills = " ".join(f"svg .{name} {{ fill: var(--{name}); }}" for name in names)
    themes = f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    return f"{themes}\n{texts}\n{fills}\n"


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _packed(data: object) -> str:
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return b64encode(zlib.compress(text.encode(), 9)).decode()
