"""What a run reports to GitHub Actions besides its table: annotations and the step's summary."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from dmlconf.cli.output.console import warn
from dmlconf.reports import github, markdown
from dmlconf.run_log.log import RunLog

__all__ = ["publish"]

_MOST_SUMMARY_BYTES: Final = 1_000_000
"""GitHub refuses a summary of more than 1 MiB. Source: Workflow commands, GitHub Docs."""


def publish(log: RunLog) -> None:
    """Print annotations, and append the run as Markdown to the step's summary.

    Outside a workflow it only warns.

    Raises:
        OSError: the summary cannot be written.
    """
    if not os.environ.get("GITHUB_ACTIONS"):
        warn("--report github: GITHUB_ACTIONS is not set, so nothing was reported to GitHub")
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(github.render(log).encode("utf-8", "backslashreplace"))
    sys.stdout.buffer.flush()
    file = os.environ.get("GITHUB_STEP_SUMMARY")
    if file:
        text = markdown.render(log).encode("utf-8", "backslashreplace")
        if len(text) > _MOST_SUMMARY_BYTES:
            head = text[:_MOST_SUMMARY_BYTES].rpartition(b"\n")[0]
            text = head + b"\n\nThe rest is too long for GitHub.\n"
        with Path(file).open("ab") as stream:
            stream.write(text)
