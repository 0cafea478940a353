"""`capture --model`: report the first node whose output differs, and the suspect software.

Outputs of ONNX Runtime's DirectML provider are compared with those of its CPU provider. DirectML is
suspect if one of its dispatches fails, and the DirectML provider if all dispatches pass. Otherwise
nothing is suspect.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from dmlconf.capture.dispatch_cases import FOLDER, RECORDING
from dmlconf.capture.launching import program_environment
from dmlconf.catalogue.loader import entry_of
from dmlconf.cli.output.console import say
from dmlconf.engine.core import Engine
from dmlconf.engine.events import Judged
from dmlconf.engine.making_runs import plan_run
from dmlconf.verdicts.status import Status
from dmlconf.verdicts.verdict import Verdict

__all__ = ["report_difference", "suspect"]

_MOST_NAMED: Final = 5
"""The most operators with a wrong page that are named."""


def report_difference(folder: Path, program: Sequence[str], has_dispatches: bool) -> None:
    """Find the first node whose output differs, and judge the kept dispatches of DirectML.

    Args:
        program: the arguments with which Python ran the model: `-m`, a module and its arguments.
        has_dispatches: whether the data of dispatches was kept.
    """
    say("The outputs differ from the CPU provider's; looking for the first node whose output does")
    # A process without hooks, since the graphs that the search compiles must not be captured.
    command = [sys.executable, *program, "--find-difference"]
    subprocess.run(command, env=program_environment(), check=False)
    dispatches = folder / FOLDER
    if not has_dispatches:
        say(_UNKNOWN)
    elif not (dispatches / RECORDING).exists():
        say(_LEFT_OUT)
    else:
        say(suspect(_judged(dispatches)))


_UNKNOWN: Final = (
    "Capture it with --data all to learn whether DirectML's dispatches are right. If they are, "
    "ONNX Runtime's DirectML provider is suspect: how it translates that node."
)

_LEFT_OUT: Final = (
    "All dispatches were left out, so it is unknown whether DirectML or ONNX Runtime's DirectML "
    "provider is suspect."
)


def _judged(dispatches: Path) -> list[Verdict]:
    run = plan_run([dispatches], f"recording:{dispatches}", against="numpy")
    with Engine(run) as engine:
        events = [event for event in engine.execute() if isinstance(event, Judged)]
    return [event.verdict for event in sorted(events, key=lambda event: event.place)]


def suspect(verdicts: Sequence[Verdict]) -> str:
    """Return a sentence on the suspect, from the verdicts on all dispatches in their order."""
    wrong = next((each for each in verdicts if each.status.traits.fails_run), None)
    if wrong is not None:
        return f"DirectML is suspect: its dispatch {wrong.case} is wrong."
    right = sum(each.status is Status.PASSED for each in verdicts)
    if right < len(verdicts):
        return (
            f"Of {len(verdicts):,} dispatches {right:,} are right, and the others have no verdict."
        )
    return (
        "Every dispatch is right, so ONNX Runtime's DirectML provider is suspect: how it "
        f"translates that node.{_known_errors(verdicts)}"
    )


def _known_errors(verdicts: Sequence[Verdict]) -> str:
    names = dict.fromkeys(verdict.operator for verdict in verdicts)
    # Graphs have no page of their own.
    known = [name for name in names if getattr(entry_of(name), "page_errors", ())]
    if not known:
        return ""
    return (
        " It may rely on a page of DirectML that is wrong: `dmlconf operators NAME` has what is "
        f"known of {', '.join(known[:_MOST_NAMED])}{' and others' * (len(known) > _MOST_NAMED)}."
    )
