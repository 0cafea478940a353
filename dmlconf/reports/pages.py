"""Render pages from `templates/`: pages in one file, and sets of pages with one style sheet."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dmlconf.documents.problems import printable
from dmlconf.verdicts.status import Status

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = [
    "closing_style",
    "compact_json",
    "page_parts",
    "render_linked_page",
    "render_page",
    "stylesheet",
]

_PLACEHOLDER: Final = "\0data\0"
"""Stands for the script's data while the template is rendered."""

_TEMPLATES: Final = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class _Page:
    """The frame of a page, for the templates; parts that a page lacks are empty.

    Attributes:
        data: `_PLACEHOLDER`, which `page_parts` replaces by the script's data: JSON, compressed, in
            Base64.
        stylesheet: the address of a style sheet that several pages share, instead of `style`.
    """

    title: str
    style: Any = ""
    script: Any = ""
    data: Any = ""
    stylesheet: str = ""

    @property
    def style_source(self) -> str:
        """The source of the styles that the content policy of the page permits."""
        if self.stylesheet:
            return "'self' file:"  # For a page that is a local file, `'self'` is not enough.
        return _source(str(self.style))

    @property
    def script_source(self) -> str:
        """The source of the script that the content policy permits; `'none'` without a script."""
        return _source(str(self.script)) if self.script else "'none'"


def render_page(
    template: str, title: str, values: Mapping[str, Any], data: object = None, *scripts: str
) -> str:
    """Return a page that works from a file, without a network, under a strict content policy.

    Args:
        title: the title of the page, which is escaped.
        values: the values of the template; text is escaped unless it is `Markup`.
        data: the script's data, as JSON values; None for none.
        scripts: the names of the script's files, such as `copy.js`.

    Raises:
        ValueError: the data contains NaN or an infinity, which JSON lacks.
    """
    texts = () if data is None else (compact_json(data),)
    return "".join(page_parts(template, title, values, texts, *scripts))


def compact_json(data: object) -> str:
    """Return values as JSON without blanks between them.

    Raises:
        ValueError: the values contain NaN or an infinity, which JSON lacks.
    """
    return json.dumps(data, separators=(",", ":"), allow_nan=False)


def page_parts(
    template: str, title: str, values: Mapping[str, Any], data: Iterable[str], *scripts: str
) -> Iterator[str]:
    """Yield the text of `render_page` in parts, so that much data takes little memory.

    Args:
        data: parts of the script's data as JSON; empty for none.
    """
    from markupsafe import Markup

    packed = _packed(data)
    first = next(packed, "")
    page = _Page(
        title=title,
        style=Markup(stylesheet()),
        script=Markup("".join(map(_read, scripts))),
        data=Markup(_PLACEHOLDER) if first else "",
    )
    text = _environment().get_template(template).render({**values, "page": page}) + "\n"
    before, placeholder, after = text.rpartition(_PLACEHOLDER)
    yield before
    if placeholder:
        yield first
        yield from packed
    yield after


def render_linked_page(template: str, title: str, values: Mapping[str, Any], root: str) -> str:
    """Return one of several pages that share a style sheet and have no script, or their feed.

    Args:
        values: as for `render_page`.
        root: the path from the folder of the page to the folder of the style sheet, such as `../`.
    """
    page = _Page(printable(title), stylesheet=f"{root}style.css")
    values = {**values, "page": page, "root": root}
    return _environment().get_template(template).render(values) + "\n"


def stylesheet() -> str:
    """Return the style sheet of all pages."""
    return _status_style() + _read("page.css")


@cache
def _environment() -> Environment:
    """Return the environment of all templates, which escapes all text but `Markup`."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: Any) -> Any:
        return printable(value) if type(value) is not Markup and isinstance(value, str) else value

    return Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
    )


def closing_style(sentence: str) -> str:
    """Return the CSS class of a closing sentence: `failed` for `FAILED: 3 of 20 cases ...`.

    Empty for sentences that begin neither with `FAILED` nor with `PASSED`.
    """
    return {"FAILED": "failed", "PASSED": "passed"}.get(sentence.partition(":")[0], "")


def _status_style() -> str:
    light, dark = (
        " ".join(f"--{status.css_class}: {status.traits.colors[at]};" for status in Status)
        for at in (0, 1)
    )
    names = [status.css_class for status in Status]
    texts = " ".join(f".{name} {{ color: var(--{name}); }}" for name in names)
    fills = " ".join(f"svg .{name} {{ fill: var(--{name}); }}" for name in names)
    themes = f":root {{ {light} }}\n@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}"
    bold = ", ".join(f"td.{status.css_class}" for status in Status if status.fails_run)
    return f"{themes}\n{texts}\n{fills}\n{bold} {{ font-weight: 600; }}\n"


def _read(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


def _source(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def _packed(texts: Iterable[str]) -> Iterator[str]:
    """Yield the parts of a text, compressed and in Base64; nothing if there is no part."""
    compressor, left = zlib.compressobj(9), b""
    empty = True
    for text in texts:
        empty = False
        left += compressor.compress(text.encode())
        whole = len(left) - len(left) % 3  # Base64 makes four characters of three bytes.
        if whole:
            yield b64encode(left[:whole]).decode()
            left = left[whole:]
    if not empty:
        yield b64encode(left + compressor.flush()).decode()
