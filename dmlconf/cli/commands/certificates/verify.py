"""`dmlconf verify`: judge all outputs in a certificate again, and compare the verdicts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click

from dmlconf.certification.findings import Result
from dmlconf.certification.keys import read_public_keys
from dmlconf.certification.verification import Demand, verify
from dmlconf.certification.waived_limit import WaivedLimit
from dmlconf.cli.common.cache import checked_files
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.completion import complete_profile
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import TEXT
from dmlconf.cli.common.path_types import ANY_PATH, EXISTING_FILE
from dmlconf.cli.options.backend import color_option, jobs_option
from dmlconf.cli.options.max_waived import max_waived_option
from dmlconf.cli.options.reporting import parse_reports, report_option, write
from dmlconf.cli.options.selection import (
    challenge_option,
    named_profile,
    paths_argument,
    suite_paths,
)
from dmlconf.cli.output.progress import progress
from dmlconf.documents.files import UnreadableFileError, read_bytes
from dmlconf.documents.problems import printable
from dmlconf.limits import LARGEST_DOCUMENT
from dmlconf.reports.formats import VERIFICATION_FORMATS
from dmlconf.reports.verification import table
from dmlconf.workers.execution import Limits

__all__ = ["command"]

_CODES: Final = {
    Result.HOLDS: ExitCode.SUCCESS,
    Result.DOES_NOT_HOLD: ExitCode.FAILED,
    Result.REFUSED: ExitCode.INVALID_FILE,
}


@click.command("verify", cls=Command, short_help="Judge all outputs in a certificate again.")
@click.argument("file", type=ANY_PATH)
@paths_argument
@option(
    "--key",
    "keys",
    multiple=True,
    metavar="PUB.pem",
    type=ANY_PATH,
    help="A public key that must have signed it; all of them, if the file has several.",
)
@challenge_option("The challenge number that it must have been made with.")
@option(
    "--profile",
    type=TEXT,
    metavar="PROFILE",
    shell_complete=complete_profile,
    help="The profile that it must meet; by default the one that it names. For your own "
    "profile, give the path of its file.",
)
@option(
    "--substrate",
    type=EXISTING_FILE,
    metavar="FILE",
    help="Accept failures caused by the limits that this file lists.",
)
@option(
    "--allow-backend",
    "backends",
    multiple=True,
    metavar="NAME",
    help="Also accept a certificate of this backend, such as numpy or a plugin's, or of "
    "directml without an adapter and a driver.",
)
@max_waived_option
@jobs_option("as many as pay off")
@report_option(VERIFICATION_FORMATS)
@option("-q", "--quiet", is_flag=True, help="Show no progress bar.")
@color_option
def command(
    file: Path,
    paths: tuple[Path, ...],
    keys: tuple[Path, ...],
    challenge: int | None,
    profile: str | None,
    substrate: Path | None,
    backends: tuple[str, ...],
    max_waived: WaivedLimit | None,
    jobs: int | None,
    report_options: tuple[str, ...],
    quiet: bool,
    color: str,
) -> int:
    """Verify the certificate FILE: judge every output in it again, and compare the verdicts.

    Neither the device nor a network is needed. The cases are those of the bundled suite, or those
    under PATHS. Without --key, the keys that signed are listed, but not whose they are. A
    certificate of anything but DirectML on an adapter needs --allow-backend.

    Exit codes: 0 it holds; 1 it does not; 2 wrong usage; 3 it is not a certificate, was changed
    after it was made, or a key of --key has not signed it, or a profile or a case file is invalid;
    8 a report that could not be written.
    """
    reports = parse_reports(report_options, VERIFICATION_FORMATS)
    demand = Demand(
        suite_paths=suite_paths(paths),
        keys=tuple(key for file_of_keys in keys for key in read_public_keys(file_of_keys)),
        challenge=challenge,
        profile=None if profile is None else named_profile(profile),
        substrate=_content(substrate) if substrate else None,
        backends=backends,
        max_waived=max_waived,
        store=checked_files(),
        limits=Limits(jobs) if jobs else None,
    )
    with ExitStack() as stack:

        def on_start(cases: int) -> Callable[[bool], None]:
            return stack.enter_context(progress(cases, quiet=quiet, color=color))

        verification = verify(file, demand, on_start)
    shown = write(reports, verification, table(verification), color, announce=not quiet)
    code = _CODES[verification.result]
    return code if code or shown else ExitCode.OUTPUT


def _content(path: Path) -> bytes:
    try:
        return read_bytes(path, LARGEST_DOCUMENT)
    except UnreadableFileError as error:
        raise click.UsageError(printable(f"--substrate {path} {error}")) from error
