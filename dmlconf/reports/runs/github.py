"""The report for GitHub Actions: annotations next to the lines of cases, and a summary."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from dmlconf.documents.problems import printable
from dmlconf.reports.runs import markdown, summary
from dmlconf.reports.runs.location import file_and_line
from dmlconf.reports.spreading import spread
from dmlconf.run_log.log import RunLog
from dmlconf.verdicts.simplest import simplest_first
from dmlconf.verdicts.verdict import Verdict

__all__ = ["MOST_ANNOTATIONS", "publish", "render"]

MOST_ANNOTATIONS: Final = 10
"""The most errors of one step that GitHub shows.

Source: Usage limits for annotations, GitHub Docs."""

_MOST_SUMMARY_BYTES: Final = 1_000_000
"""A little less than the largest summary that GitHub takes, 1 MiB.

Source: Workflow commands, GitHub Docs."""


def publish(log: RunLog) -> str:
    """Print annotations, and append the run as Markdown to the step's summary if it has one.

    Returns:
        A warning if there is no workflow and nothing was printed; else an empty text.

    Raises:
        OSError: standard output or the summary cannot be written.
    """
    if not os.environ.get("GITHUB_ACTIONS"):
        return "GITHUB_ACTIONS is not set, so nothing was reported to GitHub"
    sys.stdout.flush()
    sys.stdout.buffer.write(render(log).encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if file:
        text = markdown.render(log).encode("utf-8", "backslashreplace")
        if len(text) > _MOST_SUMMARY_BYTES:
            head = text[:_MOST_SUMMARY_BYTES].rpartition(b"\n")[0]
            text = head + b"\n\nThe rest is too long for GitHub.\n"
        with Path(file).open("ab") as stream:
            stream.write(text)
    return ""


def render(log: RunLog) -> str:
    """Return the workflow commands: an annotation on the run, and on up to nine failures.

    The failures differ in operator or reason as far as possible.

    Source: Workflow commands for GitHub Actions, GitHub Docs.
    """
    return "".join(f"{line}\n" for line in _commands(log))


def _commands(log: RunLog) -> Iterator[str]:
    sentence = summary.closing_sentence(log)
    kinds = {"FAILED": "error", "PASSED": "notice"}
    kind = kinds.get(sentence.partition(":")[0], "warning")
    yield f"::{kind} title=dmlconf::{_data(sentence)}"
    failures = spread(summary.failures(log), _operator_and_reason, simplest_first)
    for verdict in islice(failures, MOST_ANNOTATIONS - 1):
        file, line = file_and_line(verdict.location)
        location = f"file={_property(file)}," if file else ""
        location += f"line={line}," if line else ""
        reason = verdict.reason
        title = f"{verdict.status}: {verdict.case}"
        message = f"{reason.kind}: {reason.message}" if reason else str(verdict.status)
        message += f"\n{summary.repeat_command(log.header, verdict)}"
        yield f"::error {location}title={_property(title)}::{_data(message)}"


def _operator_and_reason(verdict: Verdict) -> tuple[str, str]:
    return verdict.operator, str(verdict.reason.kind if verdict.reason else "")


def _data(text: str) -> str:
    lines = "\n".join(map(printable, text.replace("%", "%25").split("\n")))
    return lines.replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
