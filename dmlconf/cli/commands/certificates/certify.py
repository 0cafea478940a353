"""`dmlconf certify`: run the cases of a profile, and write a file that another party can check."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

import click

from dmlconf.cases.loading.loader import load_suite, require_valid
from dmlconf.certification.acceptance import too_many_waived, waived_by_sender
from dmlconf.certification.certificate import SUFFIX, new_certificate
from dmlconf.certification.contents import read_statement_file, waivers_of_run
from dmlconf.certification.findings import Finding, FindingKind
from dmlconf.certification.journal import Journal, journal_path
from dmlconf.certification.keys import read_private_key
from dmlconf.certification.making import (
    LOG,
    Order,
    certificate_header,
    journal_head,
    judge_order,
    members_of,
    predicate_of,
    run_order,
)
from dmlconf.certification.profiles import required_cases, shortcomings
from dmlconf.certification.statement import Predicate
from dmlconf.certification.verification import not_allowed
from dmlconf.certification.waived_limit import WaivedLimit
from dmlconf.cli.common.cache import checked_files
from dmlconf.cli.common.command import Command, option
from dmlconf.cli.common.completion import complete_profile
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.common.parameter_types import TEXT
from dmlconf.cli.common.path_types import ANY_PATH, FILE
from dmlconf.cli.options.backend import backend_option, color_option
from dmlconf.cli.options.device import DeviceOptions, single_device_options
from dmlconf.cli.options.max_waived import max_waived_option
from dmlconf.cli.options.run_exit_code import WAIVERS_HELP
from dmlconf.cli.options.selection import (
    challenge_option,
    named_profile,
    paths_argument,
    suite_paths,
)
from dmlconf.cli.output.console import say, warn
from dmlconf.cli.output.files import OutputError, replaced
from dmlconf.cli.output.progress import progress
from dmlconf.documents.files import UnreadableFileError, read_bytes
from dmlconf.documents.problems import printable
from dmlconf.documents.recognition import CERTIFICATE, RUN_LOG
from dmlconf.documents.wording import counted, first_lines
from dmlconf.engine.core import Engine
from dmlconf.engine.making_runs import outcomes_of
from dmlconf.engine.run import How
from dmlconf.engine.session import OpenBackend
from dmlconf.excuses.waiver_file import read_waivers
from dmlconf.limits import LARGEST_DOCUMENT
from dmlconf.run_log.log import Header
from dmlconf.verdicts.verdict import Verdict
from dmlconf.workers.execution import Limits, processes_that_pay
from dmlconf.workers.scratch import ScratchFolder

__all__ = ["command"]

_MOST_NAMED: Final = 10
"""The most cases that a message lists."""

_Bar = Callable[[], AbstractContextManager[Callable[[bool], None]]]


@click.command("certify", cls=Command, short_help="Write a certificate of what a backend computes.")
@paths_argument
@backend_option(
    "The backend to certify: directml, onnxruntime:provider=NAME, a plugin's, or "
    "recording:PATH for outcomes recorded earlier, in the environment of the recording.",
    required=True,
)
@option(
    "--profile",
    type=TEXT,
    required=True,
    metavar="PROFILE",
    shell_complete=complete_profile,
    help="The profile whose cases must have a verdict, such as 5_0, 5_0+model, or onnx-core for "
    "a provider of ONNX Runtime.",
)
@option(
    "-o",
    "--output",
    required=True,
    metavar=f"FILE{SUFFIX}",
    type=FILE,
    help="Write the certificate to this file.",
)
@option(
    "--key",
    metavar="KEY.pem",
    type=ANY_PATH,
    help="Sign it with this private key; `dmlconf sign` can do so later.",
)
@option(
    "--waivers",
    metavar="FILE",
    type=FILE,
    help=WAIVERS_HELP,
)
@max_waived_option
@option(
    "--statement",
    metavar="FILE",
    type=FILE,
    help="Include your statement about the product: vendor, product, contact, text.",
)
@challenge_option(
    "Vary the data that cases generate by this number, chosen by the party that will verify."
)
@option("--resume", is_flag=True, help="Continue a certification whose outcomes were kept.")
@single_device_options
@option("-q", "--quiet", is_flag=True, help="Show no progress bar.")
@color_option
def command(
    paths: tuple[Path, ...],
    backend: str,
    profile: str,
    output: Path,
    key: Path | None,
    waivers: Path | None,
    max_waived: WaivedLimit | None,
    statement: Path | None,
    challenge: int | None,
    resume: bool,
    device_options: DeviceOptions,
    quiet: bool,
    color: str,
) -> int:
    """Run the cases of a profile, and write a certificate of their outcomes.

    The certificate holds every output, or a digest and a sample if the output has 64 KiB or more.
    So `dmlconf verify` can judge the outputs again without the device. The cases are those of
    the bundled suite, or those under PATHS. Outcomes are kept in FILE.dmlcert.partial until the
    certificate is written, unless a recording lacks some; --resume continues from there. If
    verdicts do not allow a certificate, FILE.dmlcert.jsonl is the log of the run.

    Exit codes: 0 the certificate is written; 1 verdicts do not allow one; 6 the run is incomplete
    (a message lists what is missing); 8 the certificate could not be written; otherwise the same as
    for run.
    """
    if output.suffix != SUFFIX:
        raise click.BadParameter(printable(f"{output} does not end in {SUFFIX}"), param_hint="-o")
    private = read_private_key(key) if key else None
    tested = device_options.tested(backend)
    if tested.name == "numpy":
        warn("numpy is the reference: a certificate of it says nothing about DirectML")
    files = {"waivers": waivers, "substrate": device_options.substrate, "statement": statement}
    contents = {
        f"{name}.yaml": _content(path, name) for name, path in files.items() if path is not None
    }
    if statement:
        read_statement_file(statement)
    accepted = read_waivers(waivers) if waivers else None
    if accepted:
        accepted.require_cases(paths, checked_files())
    replaced(output, None, own=CERTIFICATE)
    demanded = named_profile(profile)
    if max_waived is not None:
        demanded = replace(demanded, max_waived=max_waived)
    suite = load_suite(suite_paths(paths), store=checked_files(), challenge=challenge)
    plan = list(required_cases(demanded, suite.plan()))
    require_valid(suite, plan)
    if not plan:
        under = f" under {', '.join(map(str, paths))}" if paths else ""
        say(f"Error: no case{under} belongs to profile {demanded.name}")
        return ExitCode.NOTHING_SELECTED
    order = Order(
        profile=demanded,
        suite=suite,
        suite_paths=suite_paths(paths),
        plan=plan,
        challenge=challenge,
        substrate=device_options.known_limits(),
        files=contents,
    )
    bar = partial(progress, len(plan), quiet=quiet, color=color)
    run = outcomes_of(suite, plan, How(tested, device_options.limits()))
    with Engine(run) as engine:
        device = engine.backend
        lacking = shortcomings(demanded, device.capabilities)
        if lacking:
            return _incomplete(output, lacking)
        header = certificate_header(order, device, engine.header)
        if accepted:
            order = replace(order, waivers=waivers_of_run(accepted.waivers, header))
        with Journal(journal_path(output), journal_head(order, header), resume=resume) as journal:
            missing = _run(order, engine, journal, bar)
            if missing:
                return _incomplete(output, missing)
            limits = Limits(
                device_options.jobs or processes_that_pay(len(plan)), device_options.timeout
            )
            certificate = _new_contents(order, device, header, journal, limits, bar)
            if certificate.findings:
                return _not_allowed(output, certificate)
            content = new_certificate(certificate.predicate, certificate.members, private)
            try:
                replaced(output, content, own=CERTIFICATE)
            except OutputError:
                say("The outcomes are kept: --resume writes the certificate")
                raise
            journal.done()
    signer = f"signed by {private.public.keyid}" if private else "unsigned: `dmlconf sign` signs it"
    recorded = "of a recording, not of a run: " if tested.name == "recording" else ""
    click.echo(
        printable(f"{output}: {recorded}profile {demanded.name}, {certificate.counts}; {signer}")
    )
    return ExitCode.SUCCESS


def _content(path: Path, option: str) -> bytes:
    try:
        return read_bytes(path, LARGEST_DOCUMENT)
    except UnreadableFileError as error:
        raise click.UsageError(printable(f"--{option} {path} {error}")) from error


def _run(order: Order, engine: Engine, journal: Journal, bar: _Bar) -> list[str]:
    """Run the cases that the journal lacks; return a list of one error if some have no outcome."""
    try:
        with bar() as advance:
            missing = run_order(order, engine, journal, advance)
    except KeyboardInterrupt:
        progress_note = f"{len(journal.outcomes):,} of {len(order.plan):,} outcomes are kept"
        return [f"interrupted: {progress_note}; add --resume to continue"]
    if not missing:
        return []
    journal.done()
    count = f"{len(missing):,} of {len(order.plan):,} cases have no outcome in the recording"
    return ["\n".join([f"{count}:", *first_lines(missing, _MOST_NAMED)])]


@dataclass(frozen=True, slots=True)
class _NewContents:
    """The contents of a new certificate, which must not be written if it has `findings`."""

    findings: Sequence[Finding]
    predicate: Predicate
    members: Mapping[str, bytes]
    counts: str  # Such as `9 passed, 1 waived`.


def _new_contents(
    order: Order, device: OpenBackend, header: Header, journal: Journal, limits: Limits, bar: _Bar
) -> _NewContents:
    finished = datetime.now(UTC).isoformat(timespec="seconds")
    verdicts: dict[str, Verdict] = {}
    with ScratchFolder() as folder, bar() as advance:
        outcomes, judged = judge_order(order, header, device, journal.outcomes, folder, limits)
        for verdict in judged:
            verdicts[verdict.case] = verdict
            advance(verdict.status.fails_run)
    counts = Counter(verdict.status for verdict in verdicts.values()).most_common()
    findings = list(not_allowed(order.profile, verdicts.values()))
    if too_many := too_many_waived(order.profile.max_waived, verdicts):
        findings.append(Finding(FindingKind.NOT_ALLOWED, too_many, waived_by_sender(verdicts)))
    return _NewContents(
        findings,
        predicate_of(order, device, header),
        members_of(order, header, verdicts, outcomes, finished),
        ", ".join(f"{count:,} {status}" for status, count in counts),
    )


def _incomplete(output: Path, reasons: Sequence[str]) -> int:
    for reason in reasons:
        say(f"Error: {reason}")
    say(f"{output} was not written: the run is incomplete")
    return ExitCode.INCOMPLETE


def _not_allowed(output: Path, contents: _NewContents) -> int:
    """Say why no certificate can be made, and write the run's log to `OUTPUT.jsonl`."""
    for finding in contents.findings:
        count = counted(len(finding.cases), "case")
        cases = first_lines(finding.cases, _MOST_NAMED)
        say("\n".join([f"Error: {finding.message}, {count}:", *cases]))
    log = output.with_name(f"{output.name}.jsonl")
    replaced(log, contents.members[LOG], own=RUN_LOG)
    draft = shlex.join(["dmlconf", "waive", str(log), "-o", "waivers.yaml"])
    say(
        f"{output} was not written, but the outcomes are kept, and {log} is the log of the run. "
        "What to do next:\n"
        f"  see why they fail      {shlex.join(['dmlconf', 'run', f'--failed={log}'])}\n"
        f"  accept known failures  {draft}; then add --resume --waivers waivers.yaml\n"
        "  run broken cases again add --resume"
    )
    return ExitCode.FAILED
