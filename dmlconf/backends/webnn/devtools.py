"""Drive Chromium without a window, by its DevTools protocol over a pipe; not on Windows.

Source: https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Final

__all__ = ["LONGEST_SCRIPT", "Browser", "BrowserEndedError", "PageError"]

_RENUMBER: Final = """
import fcntl, os, sys
reads, writes = (fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3])
os.dup2(reads, 3)
os.dup2(writes, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""A Python program that becomes Chromium, which reads commands from descriptor 3 and writes answers
to 4.
"""

_BLOCK: Final = 1 << 20

LONGEST_SCRIPT: Final = 1 << 26
"""A script must be shorter than these 64 Mi characters: a command must be shorter than 100 MiB."""

ORIGIN: Final = "https://dmlconf.invalid/"
"""The address of the page: https, as WebNN requires. `Browser` answers requests for it."""


class BrowserEndedError(Exception):
    """The browser or its page has ended, or the browser refuses a command."""


class PageError(Exception):
    """A script of the page has thrown an exception, with this message."""


class Browser:
    """A browser, and the page in which its scripts run.

    Attributes:
        closed: whether `close` was called.
        version: the browser's version, such as `138.0.7204.92`.
    """

    def __init__(
        self, program: Path, arguments: Sequence[str], environment: Mapping[str, str]
    ) -> None:
        """Start the browser, and open its page.

        Raises:
            OSError: no process can be started, or this is Windows.
            BrowserEndedError: the program cannot be started, the browser or its page ended, or a
                command was refused.
        """
        if sys.platform == "win32":
            raise OSError("a browser can be driven on Linux and macOS only, through open pipes")
        self.closed = False
        self._profile = tempfile.TemporaryDirectory(prefix="dmlconf-", ignore_cleanup_errors=True)
        command_read, self._write = os.pipe()
        self._read, answer_write = os.pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # `close` closes it.
        command = [
            str(program),
            "--headless",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._profile.name}",
            *arguments,
            "about:blank",
        ]
        ends = [str(command_read), str(answer_write)]
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _RENUMBER, *ends, *command],
                pass_fds=(command_read, answer_write),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,
            )
        except BaseException:
            self._release()
            raise
        finally:
            os.close(command_read)
            os.close(answer_write)
        self._number = 0
        self._rest = bytearray()
        self._session = ""
        try:
            self.version = str(self.send("Browser.getVersion")["product"]).partition("/")[2]
            target = self.send("Target.createTarget", url="about:blank")["targetId"]
            attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
            self._session = attached["sessionId"]
            self._open_page()
        except BaseException:
            self.close()
            raise

    def _open_page(self) -> None:
        self.send("Fetch.enable", patterns=[{"urlPattern": f"{ORIGIN}*"}])
        self.send("Page.enable")
        self._post("Page.navigate", url=ORIGIN)
        for message in self._messages():
            if message.get("method") == "Fetch.requestPaused":
                self._post(
                    "Fetch.fulfillRequest",
                    requestId=message["params"]["requestId"],
                    responseCode=200,
                    responseHeaders=[{"name": "Content-Type", "value": "text/html"}],
                    body="PGh0bWw+PC9odG1sPg==",  # <html></html> in base64
                )
            if message.get("method") == "Page.loadEventFired":
                return

    def evaluate(self, script: str, timeout: float | None = None) -> Any:
        """Return the value of a script, after awaiting it.

        Raises:
            PageError: the script has thrown an exception.
            BrowserEndedError: the browser or its page has ended, or refuses the script.
            TimeoutError: the script takes longer than `timeout` seconds; None sets no limit.
        """
        answer = self.send(
            "Runtime.evaluate",
            timeout,
            expression=script,
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            exception = details.get("exception", {})
            raise PageError(str(exception.get("description") or details.get("text")))
        return answer["result"].get("value")

    def send(self, method: str, timeout: float | None = None, /, **parameters: Any) -> Any:
        """Return the answer to a command, a mapping.

        Raises:
            BrowserEndedError: the browser or its page has ended, or refuses the command.
            TimeoutError: there is no answer within `timeout` seconds; None sets no limit.
        """
        number = self._post(method, **parameters)
        for message in self._messages(timeout):
            if message.get("method") in ("Inspector.targetCrashed", "Inspector.detached"):
                raise BrowserEndedError("the page has crashed")
            if message.get("id") == number:
                if "error" in message:
                    raise BrowserEndedError(str(message["error"].get("message")))
                return message["result"]
        raise AssertionError("messages end with an exception")

    def _post(self, method: str, **parameters: Any) -> int:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        try:
            while data:
                data = data[os.write(self._write, data[:_BLOCK]) :]
        except OSError as error:
            raise self._ended() from error
        return self._number

    def _messages(self, timeout: float | None = None) -> Iterator[Any]:
        until = None if timeout is None else monotonic() + timeout
        while True:
            end = self._rest.find(b"\0")
            while end < 0:
                left = None if until is None else max(0.0, until - monotonic())
                if not select.select([self._read], [], [], left)[0]:
                    raise TimeoutError(f"the browser gave no answer within {timeout:g} s")
                start = len(self._rest)
                block = os.read(self._read, _BLOCK)
                if not block:
                    raise self._ended()
                self._rest += block
                end = self._rest.find(b"\0", start)
            message = bytes(self._rest[:end])
            del self._rest[: end + 1]
            yield json.loads(message)

    def _ended(self) -> BrowserEndedError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        last = lines[-1] if lines else "it wrote nothing to standard error"
        return BrowserEndedError(f"the browser ended with {self._process.returncode}: {last}")

    def close(self) -> None:
        """End the browser and all of its processes; a second call has no effect."""
        if self.closed:
            return
        self.closed = True
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._release()

    def _release(self) -> None:
        for descriptor in (self._read, self._write):
            os.close(descriptor)
        self._errors.close()
        self._profile.cleanup()
