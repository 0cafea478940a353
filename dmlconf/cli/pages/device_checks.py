"""`dmlconf devices --check`: print what checks of devices find."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click

from dmlconf.backends.check_results import CheckStatus
from dmlconf.backends.registry import check_devices
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.cases.model import Case
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.output.console import make_console
from dmlconf.documents.problems import printable
from dmlconf.resources import cases_directory

if TYPE_CHECKING:
    from dmlconf.backends.check_results import CheckResult, DeviceChecks

__all__ = ["checked_devices"]

_IDENTITIES: Final = tuple(
    f"element_wise_identity/matrix[DataType={kind},DimensionCount=4]"
    for kind in ("FLOAT32", "FLOAT16")
)
"""Each check that computes runs the first of these cases that the device supports."""

_STYLES: Final = {
    CheckStatus.PASSED: "green",
    CheckStatus.FAILED: "bold red",
    CheckStatus.BROKEN: "bold red",
    CheckStatus.UNSUPPORTED: "dim",
}


def checked_devices(path: str | None, *, as_json: bool, color: str) -> ExitCode:
    """Check the devices of every adapter, print the results, and return the exit code.

    Args:
        path: the file of DirectML, or None to look for it.
        as_json: whether to print JSON at the end instead of each result as it arrives.

    Raises:
        BackendError: DirectML cannot be used, or there is no adapter.
    """
    from rich.text import Text

    console = make_console(color)
    shown: set[int] = set()

    def show(index: int, description: str, result: CheckResult) -> None:
        if as_json:
            return
        if index not in shown:
            shown.add(index)
            console.print(Text(f"{index}  {printable(description)}", "bold cyan"))
        status = Text(f"   {str(result.status).upper():<12}", _STYLES[result.status])
        line = status.append(f"{result.name}: {printable(result.message)}", "default")
        console.print(line, soft_wrap=True)

    checks = check_devices(path, _identities(), show)
    counts = Counter(result.status for each in checks.adapters for result in each.results)
    fails = any(status.fails for status in counts)
    if as_json:
        click.echo(json.dumps(_plain(checks), indent=2))
    else:
        parts = (f"{counts[status]:,} {status}" for status in CheckStatus if counts[status])
        console.print(Text(f"{'FAILED' if fails else 'PASSED'}: {', '.join(parts)}", "bold"))
    return ExitCode.FAILED if fails else ExitCode.SUCCESS


def _identities() -> list[Case]:
    planned = load_suite([cases_directory() / "element_wise_identity"]).plan()
    by_name = {each.identifier: each for each in planned}
    return [valid_case(by_name[name]) for name in _IDENTITIES]


def _plain(checks: DeviceChecks) -> dict[str, Any]:
    return {
        "directml": {**asdict(checks.file), "path": str(checks.file.path)},
        "adapters": [
            {**asdict(each.adapter), "checks": [asdict(result) for result in each.results]}
            for each in checks.adapters
        ],
    }
