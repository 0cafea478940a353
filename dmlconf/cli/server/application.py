"""Answer requests to `dmlconf history serve` with the pages of a history.

A request must have the server's token in a cookie or, like the printed address, in its query. The
answer to a query with the token sets the cookie and redirects to the page, except for `feed.xml`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hmac import compare_digest
from threading import Lock
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs, quote

from dmlconf.documents.problems import ExpectedError, printable
from dmlconf.history.database import Database
from dmlconf.history.overview import overview_of
from dmlconf.history.timeline import Timeline
from dmlconf.reports.history.site import Site

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

__all__ = ["Application"]

_COOKIE: Final = "dmlconf-history"

_MOST_FIELDS: Final = 100
"""A query with more fields than this is refused."""

_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "xml": "application/atom+xml; charset=utf-8",
}

_HEADERS: Final = [
    ("Cache-Control", "private, no-cache"),
    ("Content-Security-Policy", "default-src 'none'; style-src 'self'; frame-ancestors 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Content-Type-Options", "nosniff"),
]

_REFUSED: Final = (
    "This address has no token or a wrong one. Use the address that `dmlconf history serve` "
    "printed.\n"
)


class Application:
    """The WSGI application, which shows pages to whoever sends `token` in a cookie or query.

    If the database cannot be read, `report` gets a message.
    """

    def __init__(self, history: Database, token: str, report: Callable[[str], None]) -> None:
        self._history = history
        self._token = token
        self._report = report
        self._lock = Lock()
        self._state: tuple[str, ...] | None = None
        self._site: Site | None = None

    def __call__(self, request: WSGIEnvironment, start: StartResponse) -> Iterable[bytes]:
        """Answer a request."""
        status, headers, text = self._answer(request)
        body = text.encode()
        start(status, [*headers, ("Content-Length", str(len(body))), *_HEADERS])
        return [] if request["REQUEST_METHOD"] == "HEAD" else [body]

    def _answer(self, request: WSGIEnvironment) -> tuple[str, list[tuple[str, str]], str]:
        plain = [("Content-Type", "text/plain; charset=utf-8")]
        if request["REQUEST_METHOD"] not in ("GET", "HEAD"):
            allowed = [*plain, ("Allow", "GET, HEAD")]
            return "405 Method Not Allowed", allowed, "The pages can only be read.\n"
        path = request.get("PATH_INFO", "").encode("latin-1").decode("utf-8", "replace")
        name = path.removeprefix("/") or "index.html"
        token = _token_in(request.get("QUERY_STRING", ""))
        if token is not None:
            if not self._permits(token):
                return "403 Forbidden", plain, _REFUSED
            if name != "feed.xml":  # Feed readers keep no cookies.
                cookie = f"{_COOKIE}={self._token}; HttpOnly; Path=/; SameSite=Lax"
                # Two slashes at the beginning would lead to another host.
                target = quote("/" + path.lstrip("/\\"))
                return "303 See Other", [("Location", target), ("Set-Cookie", cookie)], ""
        elif not self._permits(_cookie(request)):
            return "403 Forbidden", plain, _REFUSED
        try:
            site = self._current()
        except ExpectedError as error:
            self._report(printable(str(error)))
            return "503 Service Unavailable", plain, "The history cannot be read at the moment.\n"
        content = site.content(name)
        if content is not None:
            return "200 OK", [("Content-Type", _TYPES[name.rpartition(".")[2]])], content
        text = "It may have been removed with old runs, or the case has never failed."
        page = site.missing("/", f"There is no page {name[:200]}", text)
        return "404 Not Found", [("Content-Type", _TYPES["html"])], page

    def _permits(self, token: str) -> bool:
        return compare_digest(token.encode("utf-8", "surrogatepass"), self._token.encode())

    def _current(self) -> Site:
        """Return the pages, made again if runs were added or removed."""
        with self._lock, self._history.reading() as connection:
            timeline = Timeline(connection)
            state = tuple(each.digest for each in timeline.runs)
            if self._site is None or state != self._state:
                self._site = Site(overview_of(timeline), most_cases=None)
                self._state = state
            return self._site


def _token_in(query: str) -> str | None:
    """Return a query's token; None without one, and empty text if the query has too many fields."""
    try:
        return parse_qs(query, max_num_fields=_MOST_FIELDS).get("token", [None])[0]
    except ValueError:
        return ""


def _cookie(request: WSGIEnvironment) -> str:
    """Return the token of the cookie, or an empty text.

    `http.cookies` would stop at an invalid cookie, such as one of another server on this host.
    """
    for pair in request.get("HTTP_COOKIE", "").split(";"):
        name, _, value = pair.strip().partition("=")
        if name == _COOKIE:
            return str(value)
    return ""
