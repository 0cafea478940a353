"""`dmlconf history serve` shows pages to those who have the token, until Ctrl-C ends it.

The tested code is in `dmlconf/cli/server/application.py`, `dmlconf/cli/server/serving.py` and
`dmlconf/cli/commands/results/history.py`.
"""

from __future__ import annotations

import os
import signal
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from dmlconf.cli.server.application import Application
from dmlconf.history.adding import add
from dmlconf.history.database import Database, opened
from tests.cli.process import DMLCONF, dmlconf_here, environment
from tests.history.runs import night, verdict

TOKEN = "a" * 20


@pytest.fixture
def history(tmp_path: Path) -> Iterator[Database]:
    """Yield a history, in the file `h.sqlite`, with one run of one failing case."""
    with opened(str(tmp_path / "h.sqlite"), create=True) as history:
        with history.writing() as connection:
            add(connection, night(0, [verdict("tile/matrix/a", fails=True)]))
        yield history


def ask(
    application: Application, path: str, query: str = "", *, method: str = "GET", cookie: str = ""
) -> tuple[int, dict[str, str], bytes]:
    """Return the status code, the headers and the body of the answer to a request."""
    answers: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, headers: list[tuple[str, str]], info: object = None) -> None:
        answers.append((status, headers))

    request = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path.encode().decode("latin-1"),
        "QUERY_STRING": query,
        "HTTP_COOKIE": cookie,
        "wsgi.input": BytesIO(),
    }
    body = b"".join(application(request, start))  # type: ignore[arg-type]
    [(status, headers)] = answers
    return int(status[:3]), dict(headers), body


def test_nothing_is_shown_without_the_token(history: Database) -> None:
    application = Application(history, TOKEN, print)
    for path in ("/", "/index.html", "/feed.xml", "/style.css", "/absent"):
        for query, cookie in (
            ("", ""),
            ("token=", ""),
            ("token=b", ""),
            (f"token=b&token={TOKEN}", f"dmlconf-history={TOKEN}"),
            (f"other={TOKEN}", ""),
            ("", f"dmlconf-history={TOKEN}x"),
            ("", f"other={TOKEN}"),
            ("token=\udcff", ""),  # Not UTF-8.
            ("&".join([f"token={TOKEN}"] * 101), ""),  # More fields than are read.
        ):
            code, headers, body = ask(application, path, query, cookie=cookie)
            assert (code, "Set-Cookie" in headers) == (403, False), (path, query, cookie)
            assert b"tile" not in body.lower()


def test_the_token_moves_from_the_address_into_a_cookie(history: Database) -> None:
    application = Application(history, TOKEN, print)
    code, headers, body = ask(application, "/flaky.html", f"token={TOKEN}")
    assert (code, headers["Location"], body) == (303, "/flaky.html", b"")
    cookie, *attributes = headers["Set-Cookie"].split("; ")
    assert attributes == ["HttpOnly", "Path=/", "SameSite=Lax"]
    code, headers, body = ask(application, "/flaky.html", cookie=cookie)
    assert (code, headers["Referrer-Policy"]) == (200, "no-referrer")
    assert b"No case is flaky" in body
    for others in ('theme={"dark":1}; ', "a b=c; ", "x[y]=1; "):
        assert ask(application, "/flaky.html", cookie=f"{others}{cookie}; z=1")[0] == 200
    # A browser would take `//host.example/` for another host.
    assert ask(application, "//host.example/", f"token={TOKEN}")[1]["Location"][:2] == "/h"
    code, headers, body = ask(application, "/feed.xml", f"token={TOKEN}")
    assert (code, headers["Content-Type"][:20]) == (200, "application/atom+xml")


def test_head_gets_headers_only_and_post_is_refused(history: Database) -> None:
    application = Application(history, TOKEN, print)
    cookie = f"dmlconf-history={TOKEN}"
    code, headers, body = ask(application, "/", method="HEAD", cookie=cookie)
    assert (code, body) == (200, b"")
    assert int(headers["Content-Length"]) == len(ask(application, "/", cookie=cookie)[2])
    code, headers, _ = ask(application, "/", method="POST", cookie=cookie)
    assert (code, headers["Allow"]) == (405, "GET, HEAD")


def test_unknown_paths_are_not_found(history: Database) -> None:
    application = Application(history, TOKEN, print)
    cookie = f"dmlconf-history={TOKEN}"
    for path in ("/../h.sqlite", "/cases/../index.html", "/\0", "/<script>", "/%", "/cases/"):
        code, _, body = ask(application, path, cookie=cookie)
        assert code == 404
        assert b"<script>" not in body
        assert b'href="/index.html"' in body


def test_pages_show_a_run_once_it_is_added(history: Database) -> None:
    application = Application(history, TOKEN, print)
    cookie = f"dmlconf-history={TOKEN}"
    assert b"Run #1 of" in ask(application, "/", cookie=cookie)[2]
    with history.writing() as connection:
        add(connection, night(1, [verdict("tile/matrix/a")]))
    assert b"Run #2 of" in ask(application, "/", cookie=cookie)[2]


def test_a_damaged_database_gives_status_503_and_a_message(
    history: Database, tmp_path: Path
) -> None:
    messages: list[str] = []
    application = Application(history, TOKEN, messages.append)
    history.engine.dispose()
    (tmp_path / "h.sqlite").write_bytes(b"no database" * 100)
    code, _, body = ask(application, "/", cookie=f"dmlconf-history={TOKEN}")
    assert code == 503
    assert b"cannot be read" in body
    assert "not a database" in messages[0]


@contextmanager
def served(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Yield the process of a server and its first line of output, and end it afterwards."""
    command = [*DMLCONF, "history", "serve", "--database", str(folder / "h.sqlite"), *options]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, **environment(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process, process.stdout.readline().strip()
    finally:
        process.kill()
        process.communicate()


@pytest.mark.breakdown
def test_server_answers_until_ctrl_c_and_holds_its_port(history: Database, tmp_path: Path) -> None:
    with served(tmp_path, "--port", "0") as (process, address):
        direct = urllib.request.ProxyHandler({})  # A proxy cannot reach this machine's ports.
        browser = urllib.request.build_opener(direct, urllib.request.HTTPCookieProcessor())
        with browser.open(address) as first:
            assert first.url == address.partition("?")[0]
            assert b"TILE" in first.read()
        with browser.open(urllib.request.Request(first.url, method="HEAD")) as head:
            assert head.read() == b""
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.build_opener(direct).open(first.url)
        refused.value.close()
        assert refused.value.code == 403
        port = str(urlsplit(address).port)
        with served(tmp_path, "--port", port) as (second, _):
            _, errors = second.communicate()
        assert second.returncode == 2
        assert "in use" in errors
        assert "--port" in errors
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
        assert process.returncode == 0
        assert "Traceback" not in errors


def test_a_short_token_is_refused_and_not_printed(history: Database, tmp_path: Path) -> None:
    done = dmlconf_here(
        tmp_path,
        "history",
        "serve",
        "--database",
        tmp_path / "h.sqlite",
        DMLCONF_HISTORY_TOKEN="secret",
    )
    assert done.returncode == 2
    assert "16 to 200 characters" in done.stderr
    assert "secret" not in done.stdout + done.stderr
