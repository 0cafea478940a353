"""A vendor certifies an execution provider of ONNX Runtime, as docs/certification.md says.

The tested code is in `dmlconf/cli/commands/certificates/certify.py`,
`dmlconf/cli/commands/certificates/verify.py`, `dmlconf/cli/commands/results/waive.py`,
`dmlconf/certification/acceptance.py`, `dmlconf/certification/waived_limit.py`,
`dmlconf/certification/verification.py` (the share of cases that a backend cannot express, the
challenge), `dmlconf/reports/verification.py`, `dmlconf/excuses/waiver_file.py`,
`dmlconf/certification/findings.py` and `dmlconf/backends/onnxruntime/backend.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.resources import cases_directory
from tests.cli.process import dmlconf_here

pytestmark = pytest.mark.runtimes

BACKEND: Final = "onnxruntime:provider=CPUExecutionProvider"

# ONNX Runtime refuses one of these five cases: padding that mirrors an axis of one element.
PROFILE: Final = """
format: 1
profile: ours
extends: onnx-core
operators: [PADDING, TILE]
kinds: [documented]
max_waived: 20%
max_declined: {declined}
"""

SUITE: Final = (str(cases_directory() / "padding"), str(cases_directory() / "tile"))
CERTIFY: Final = (
    *("certify", *SUITE, "-b", BACKEND, "--profile", "ours.yaml", "--key", "vendor.pem"),
    *("-o", "provider.dmlcert", "--quiet"),
)

SUITE_AND_PROFILE: Final = (*SUITE, "--profile", "ours.yaml", "--quiet")
VERIFY: Final = ("verify", "provider.dmlcert", *SUITE_AND_PROFILE)
"""Without options that accept the backend or the key."""

ACCEPT_BOTH: Final = ("--allow-backend", "onnxruntime", "--key", "vendor.pub.pem")


def output_of(folder: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit code of a command, and its output in one line."""
    done = dmlconf_here(folder, *arguments)
    text = " ".join((done.stdout + done.stderr).split())
    assert "Traceback" not in text
    return done.returncode, text


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a vendor has certified the provider, after waiving one failure."""
    folder = tmp_path_factory.mktemp("vendor")
    (folder / "ours.yaml").write_text(PROFILE.format(declined="40%"), encoding="utf-8")
    assert output_of(folder, "keygen", "vendor.pem")[0] == 0
    assert output_of(folder, "keygen", "stranger.pem")[0] == 0

    code, text = output_of(folder, *CERTIFY)
    assert code == 1
    assert "profile ours does not allow `failed`" in text
    assert "padding/documented/example-3" in text
    assert not (folder / "provider.dmlcert").exists()

    code, text = output_of(folder, "run", *SUITE, "--failed=provider.dmlcert.jsonl")
    assert code == 1
    assert "known finding reflection-of-one-element" in text

    code, _ = output_of(folder, "waive", "provider.dmlcert.jsonl", "-o", "waivers.yaml")
    assert code == 0
    waivers = folder / "waivers.yaml"
    code, text = output_of(folder, *CERTIFY, "--resume", "--waivers", "waivers.yaml")
    assert code == 3
    assert "write why these cases fail in place of the TODO" in text
    draft = waivers.read_text(encoding="utf-8")
    waivers.write_text(draft.replace("TODO: ", "Pad refuses it. "), encoding="utf-8")

    code, text = output_of(folder, *CERTIFY, "--resume", "--waivers", "waivers.yaml")
    assert code == 0, text
    assert "profile ours, 3 passed, 1 waived, 1 unsupported; signed by" in text
    return folder


def test_the_certificate_holds_with_accepted_backend_and_key(
    folder: Path,
) -> None:
    code, text = output_of(folder, *VERIFY, *ACCEPT_BOTH, "--report", "json:verified.json")
    assert code == 0, text
    assert "Runtime onnxruntime" in text
    assert "Judged by what onnx promises" in text
    assert "the backend cannot express 1 of 5 cases (20%)" in text
    assert "waivers of the sender excuse 1 of 5 cases (20%)" in text
    verified = json.loads((folder / "verified.json").read_text(encoding="utf-8"))
    assert verified["result"] == "holds"
    assert verified["waived_by_sender"] == 1


@pytest.mark.parametrize(
    ("demand", "code", "why"),
    [
        (("--key", "vendor.pub.pem"), 1, "add --allow-backend onnxruntime"),
        (("--allow-backend", "onnxruntime", "--key", "stranger.pub.pem"), 3, "not with this key"),
        ((*ACCEPT_BOTH, "--max-waived", "0"), 1, "more than the 0 allowed"),
        ((*ACCEPT_BOTH, "--challenge", "7"), 1, "no challenge, not for challenge 7"),
    ],
)
def test_verification_fails_unless_the_verifier_accepts_everything(
    folder: Path, demand: tuple[str, ...], code: int, why: str
) -> None:
    actual, text = output_of(folder, *VERIFY, *demand)
    assert actual == code, text
    assert why in text


def test_a_certificate_with_a_changed_byte_is_refused(folder: Path) -> None:
    content = bytearray((folder / "provider.dmlcert").read_bytes())
    content[content.index(b"outputs.bin") + 60] ^= 1
    (folder / "changed.dmlcert").write_bytes(content)
    code, text = output_of(folder, "verify", "changed.dmlcert", *SUITE_AND_PROFILE, *ACCEPT_BOTH)
    assert code == 3, text
    assert "changed after it was made" in text


def test_a_provider_declining_too_much_gets_no_certificate(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text(PROFILE.format(declined="10%"), encoding="utf-8")
    for name in ("vendor.pem", "waivers.yaml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    code, text = output_of(tmp_path, *CERTIFY, "--waivers", "waivers.yaml")
    assert code == 1
    assert "the backend cannot express 1 of 5 cases (20%), more than the 10% of ours" in text


def test_an_unknown_provider_gets_a_suggestion(tmp_path: Path) -> None:
    arguments = ("--profile", "onnx-core", "-o", "x.dmlcert")
    misspelt = BACKEND[:-1]
    code, text = output_of(tmp_path, "certify", "-b", misspelt, *arguments)
    assert code == ExitCode.BACKEND
    assert "did you mean CPUExecutionProvider?" in text
