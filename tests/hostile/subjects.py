"""How mutants of each kind of file are made and fed to dmlconf."""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest.mock import patch

import yaml

from dmlconf.documents.problems import InvalidFilesError
from dmlconf.excuses.known_fault_file import lint_known_faults, read_known_faults
from dmlconf.resources import schemas_directory
from dmlconf.run_log.log import read_log
from tests.certification import forging
from tests.cli.process import TILE
from tests.hostile import certificates
from tests.hostile.feeding import (
    Subject,
    complaint,
    small_files,
    small_recordings,
    suite_of,
    tree_of,
)
from tests.hostile.mutant import Mutant
from tests.hostile.mutation import mutated_bytes, mutated_lines, mutated_value
from tests.hostile.plugins import CASES, SEED_FILE, install
from tests.hostile.structured_subjects import STRUCTURED
from tests.reports.logs import log_lines

__all__ = ["SUBJECTS"]

_REPORTS: Final = ("json", "junit", "markdown", "svg", "text")


def _yaml(random: Random, base: Path, tree: Any) -> bytes:
    kind = random.random()
    if kind < 0.75:
        changed = mutated_value(random, tree, random.choice((1, 1, 2, 3, 6)))
        flow = random.choice((None, None, False, True))
        text: str = yaml.safe_dump(
            changed,
            sort_keys=False,
            default_flow_style=flow,
            width=100,
            allow_unicode=random.random() < 0.5,
        )
        return text.encode("utf-8", "surrogatepass")
    content = base.read_bytes()
    return mutated_lines(random, content) if kind < 0.9 else mutated_bytes(random, content)


def _case_mutant(random: Random) -> Mutant:
    base = random.choice(small_files("*/*.yaml"))
    tree = tree_of(base)
    entries = tree.get("cases", [])
    if len(entries) > 2:  # Fewer cases take less time.
        tree = {**tree, "cases": random.sample(entries, random.choice((1, 2)))}
    return Mutant(_yaml(random, base, tree), base)


def _feed_case(random: Random, path: Path, base: Path) -> str:
    name, folder = path.name, path.parent
    kind = random.random()
    if kind < 0.04:
        return complaint(folder, "list", name, reports={})
    if kind < 0.05:
        return complaint(folder, "validate", name, reports={})
    if kind < 0.06:
        return complaint(folder, "coverage", name, "--quiet", reports={})
    against = random.choice(("numpy", "auto"))
    quick = ("--quick",) if random.random() < 0.9 else ()
    reports = {random.choice(_REPORTS): folder / "report"} if random.random() < 0.3 else {}
    return complaint(
        folder,
        "run",
        name,
        "-q",
        *quick,
        "--log",
        "run.jsonl",
        "--against",
        against,
        reports=reports,
    )


def _log_mutant(random: Random) -> Mutant:
    lines = list(log_lines())
    kind = random.random()
    if kind < 0.65:
        for _ in range(random.choice((1, 1, 2, 4))):
            place = random.randrange(len(lines))
            try:
                record = json.loads(lines[place])
            except ValueError:
                continue
            lines[place] = _json_line(mutated_value(random, record, random.choice((1, 1, 3))))
    content = b"".join(lines)
    if 0.5 < kind < 0.9:
        content = mutated_lines(random, content)
    elif kind >= 0.9:
        content = mutated_bytes(random, content)
    return Mutant(content, Path("everything.jsonl"))


def _json_line(record: Any) -> bytes:
    return json.dumps(record).encode("utf-8", "surrogatepass") + b"\n"


def _feed_log(random: Random, path: Path, base: Path) -> str:
    verbose = random.choice((("-v",), ("-q",), ()))
    names = random.sample(_REPORTS, random.choice((1, 2)))
    reports = {name: path.parent / f"report-{name}" for name in names}
    return complaint(path.parent, "report", path.name, *verbose, reports=reports)


_members = cache(forging.members)


def _recording_mutant(random: Random) -> Mutant:
    base = random.choice(small_recordings())
    kind = random.random()
    if kind < 0.25:
        return Mutant(mutated_bytes(random, base.read_bytes()), base)
    members = dict(_members(base))
    [name] = (name for name in members if name.endswith(".json"))
    if kind < 0.8:
        manifest = json.loads(members[name])
        entries = list(manifest["cases"].items())
        if random.random() < 0.5:  # With all cases, nearly every change would be in a case.
            manifest["cases"] = dict(random.sample(entries, min(4, len(entries))))
        members[name] = _json_line(mutated_value(random, manifest, random.choice((1, 1, 2, 4))))
    else:
        other = random.choice(list(members))
        members[other] = mutated_bytes(random, members[other])
    stream = io.BytesIO()
    method = random.choice(
        (
            zipfile.ZIP_STORED,
            zipfile.ZIP_DEFLATED,
            zipfile.ZIP_DEFLATED,
            zipfile.ZIP_BZIP2,
            zipfile.ZIP_LZMA,
        )
    )
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            if random.random() < 0.97:
                entry = zipfile.ZipInfo(random.choice((name,) * 30 + ("../x",)))
                archive.writestr(entry, content, method)
    return Mutant(stream.getvalue(), base)


def _feed_recording(random: Random, path: Path, base: Path) -> str:
    how = random.choice(("-b", "--against"))
    options = ("-q", "--log", "run.jsonl", how, f"recording:{path}")
    return complaint(path.parent, "run", suite_of(base), *options, reports={})


_SUBSTRATE: Final = Path(__file__).resolve().parents[2] / "lab" / "substrate.yaml"


def _substrate_mutant(random: Random) -> Mutant:
    tree = tree_of(_SUBSTRATE)
    limits = random.sample(tree["limits"], min(3, len(tree["limits"])))
    return Mutant(_yaml(random, _SUBSTRATE, {**tree, "limits": limits}), _SUBSTRATE)


def _feed_substrate(random: Random, path: Path, base: Path) -> str:
    case = path.parent / "tile-with-a-wrong-value.yaml"
    case.write_text(TILE.replace("[1, 2, 1, 2]", "[1, 2, 1, 3]"), encoding="utf-8")
    return complaint(
        path.parent,
        "run",
        case.name,
        "-q",
        "--log",
        "run.jsonl",
        "--substrate",
        path.name,
        reports={},
    )


def _known_faults_mutant(random: Random) -> Mutant:
    base = schemas_directory() / "known-faults.yaml"
    tree = tree_of(base)
    faults = random.sample(tree["faults"], min(3, len(tree["faults"])))
    return Mutant(_yaml(random, base, {**tree, "faults": faults}), base)


def _feed_known_faults(random: Random, path: Path, base: Path) -> str:
    problems = lint_known_faults(path)
    try:
        read_known_faults(path)
    except InvalidFilesError:
        return "" if problems else "the list is refused, yet the lint finds nothing"
    return "" if not problems else "the list is read, yet the lint finds problems"


def _plugin_mutant(random: Random) -> Mutant:
    return Mutant(str(random.getrandbits(64)).encode(), Path("tests/hostile/plugins.py"))


def _feed_plugin(random: Random, path: Path, base: Path) -> str:
    folder, installed = path.parent, path.parent / "installed"
    install(installed)
    (folder / "tile.yaml").write_text(CASES, encoding="utf-8")
    reports = {name: folder / f"report-{name}" for name in random.sample(_REPORTS, 2)}
    jobs = random.choice(("1", "1", "2"))
    sys.path.insert(0, str(installed))
    try:
        with patch.dict(os.environ, {SEED_FILE: str(path), "PYTHONPATH": str(installed)}):
            options = ("-q", "-j", jobs, "--timeout", "5", "--log", "run.jsonl")
            problem = complaint(
                folder, "run", "tile.yaml", "-b", "hostile", *options, reports=reports
            )
    finally:
        sys.path.remove(str(installed))
    log = folder / "run.jsonl"
    if problem or not log.exists():  # Without a usable backend there is no log.
        return problem
    verdicts = read_log(log).verdicts
    names = {verdict.case for verdict in verdicts}
    return "" if len(names) == len(verdicts) == 12 else f"{len(verdicts)} verdicts of 12 cases"


SUBJECTS: Final[Mapping[str, Subject]] = {
    "case": Subject(".yaml", _case_mutant, _feed_case),
    "log": Subject(".jsonl", _log_mutant, _feed_log),
    "recording": Subject(".dmlrec", _recording_mutant, _feed_recording),
    "substrate": Subject(".yaml", _substrate_mutant, _feed_substrate),
    "known-faults": Subject(".yaml", _known_faults_mutant, _feed_known_faults),
    "certificate": Subject(".dmlcert", certificates.mutant, certificates.feed),
    "plugin": Subject(".seed", _plugin_mutant, _feed_plugin),
    **STRUCTURED,
}
