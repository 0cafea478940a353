"""`dmlconf verify` accepts only allowed backends and given keys, and notes a doubtful run.

The tested code is in `dmlconf/certification/acceptance.py`, `dmlconf/certification/certificate.py`,
`dmlconf/certification/keys.py`, `dmlconf/certification/findings.py`,
`dmlconf/reports/verification.py` and `dmlconf/cli/commands/certificates/verify.py`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.certification.forging import Forgery, forge, taken_apart
from tests.certification.suite import certify, printed_text, verify, write_suite
from tests.cli.process import dmlconf_here

VENDOR_KEYID = "536a221206c6e9183b3fcc0476c8b68fd7b0f57c10d2687d8d14736677b32461"
"""The identifier of the public key in vendor.pub.pem: the SHA-256 of its DER form."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the suite and `it.dmlcert`, signed by the vendor."""
    folder = write_suite(tmp_path_factory.mktemp("acceptance"))
    certify(folder, "--key", "vendor.pem")
    return folder


def verify_without_permission(
    folder: Path, *more: str, file: str = "it.dmlcert"
) -> CompletedProcess[str]:
    """Verify a certificate without allowing a backend."""
    return dmlconf_here(folder, "verify", file, "suite", "--profile", "small.yaml", "-q", *more)


def with_environment(**fields: object) -> Callable[[Forgery], None]:
    """Return a change of the environment in the statement and the log."""

    def change(forgery: Forgery) -> None:
        for each in (forgery.predicate["environment"], forgery.log[0]["environment"]):
            each |= fields

    return change


def with_directml(**fields: object) -> Callable[[Forgery], None]:

    def change(forgery: Forgery) -> None:
        details = {"directml_sha256": "0" * 64, "feature_level": "6_4"}
        with_environment(backend="directml", version="1.15.4", details=details, **fields)(forgery)
        forgery.predicate["source"]["backend"] = forgery.log[0]["backend"] = "directml"

    return change


@pytest.mark.slow
def test_backends_other_than_directml_need_permission(folder: Path) -> None:
    done = verify_without_permission(folder)
    assert done.returncode == 1
    assert "of a backend that you did not allow: it is of the backend faulty" in printed_text(done)
    assert "--allow-backend faulty" in printed_text(done)
    assert verify_without_permission(folder, "--allow-backend", "numpy").returncode == 1
    done = verify_without_permission(folder, "--allow-backend", "faulty")
    assert done.returncode == 0
    assert "it is of the backend faulty:level=6_4, which you allowed" in printed_text(done)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "lacking"),
    [
        ({"adapter": None, "driver": "1"}, "names no adapter"),
        ({"adapter": "Contoso", "driver": None}, "names no driver"),
        ({"adapter": "", "driver": ""}, "names no adapter and no driver"),
    ],
)
def test_directml_without_an_adapter_or_a_driver_needs_permission(
    folder: Path, fields: dict[str, object], lacking: str
) -> None:
    file = forge(folder, with_directml(**fields))
    done = verify_without_permission(folder, file=file)
    assert done.returncode == 1
    assert lacking in printed_text(done)
    assert (
        verify_without_permission(folder, "--allow-backend", "directml", file=file).returncode == 0
    )


def test_directml_on_an_adapter_needs_no_permission(folder: Path) -> None:
    file = forge(folder, with_directml(adapter="Contoso 1", driver="32.0.1"))
    done = verify_without_permission(folder, file=file)
    assert done.returncode == 0, done.stdout
    assert printed_text(done).startswith(
        "Device Contoso 1 Driver 32.0.1 DirectML 1.15.4 Profile small Waived none of 14 cases "
        f"Signed by {VENDOR_KEYID}"
    )


def test_verification_with_a_wrong_key_names_the_signer(folder: Path) -> None:
    done = verify(folder, "--key", "outsider.pub.pem", "--report", "json:key.json")
    assert done.returncode == 3
    assert "refused: signed, but not with this key" in printed_text(done)
    assert f"(outsider.pub.pem), but by {VENDOR_KEYID}" in printed_text(done)
    [finding] = json.loads((folder / "key.json").read_text("utf-8"))["findings"]
    assert finding["kind"] == "signed, but not with this key"


def test_a_statement_changed_after_signing_is_refused(folder: Path) -> None:
    forgery = taken_apart(folder / "it.dmlcert")
    forgery.predicate["challenge"] = "7"
    (folder / "changed.dmlcert").write_bytes(forgery.content())
    done = verify(folder, "--key", "vendor.pub.pem", file="changed.dmlcert")
    assert done.returncode == 3
    assert "signature 1 of 1 is not valid for any given or enclosed key" in printed_text(done)


def test_a_file_with_two_keys_requires_both_signatures(folder: Path) -> None:
    keys = [(folder / f"{name}.pub.pem").read_bytes() for name in ("vendor", "second")]
    for name, content in (
        ("both.pem", keys[0] + keys[1]),
        ("other-way-round.pem", keys[1] + keys[0]),
        ("windows.pem", b"The vendor's\n" + b"\n".join(keys).replace(b"\n", b"\r\n")),
    ):
        (folder / name).write_bytes(content)
        done = verify(folder, "--key", name)
        assert done.returncode == 3, name
        assert f"({name}), but by {VENDOR_KEYID}" in printed_text(done)
    (folder / "twice.pem").write_bytes(keys[0] + keys[0])
    assert verify(folder, "--key", "twice.pem").returncode == 0


@pytest.mark.parametrize(
    "more", [b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", b"-----BEGIN "]
)
def test_a_file_with_keys_and_something_else_is_refused(folder: Path, more: bytes) -> None:
    key = (folder / "vendor.pub.pem").read_bytes()
    (folder / "odd.pem").write_bytes(key + key + more)
    done = verify(folder, "--key", "odd.pem")
    assert done.returncode == 2
    assert "odd.pem has more than public keys in PEM" in done.stderr


def with_times(started: datetime, finished: datetime) -> Callable[[Forgery], None]:

    def change(forgery: Forgery) -> None:
        forgery.log[0]["started"] = started.isoformat(timespec="seconds")
        forgery.log[-1]["finished"] = finished.isoformat(timespec="seconds")

    return change


def test_an_old_or_long_run_is_noted(folder: Path) -> None:
    now = datetime.now(UTC)
    for ended_ago, lasted, notes in (
        (365, 30, []),
        (367, 30, [f"the run ended on {(now - timedelta(367)).date()}, 367 days ago"]),
        (365, 31, ["the run lasted 31 days"]),
    ):
        finished = now - timedelta(ended_ago)
        change = with_times(finished - timedelta(lasted), finished)
        done = verify(folder, file=forge(folder, change))
        assert done.returncode == 0
        noted = printed_text(done).partition("Before you accept it:")[2]
        assert noted.count("the run ") == len(notes)
        assert all(note in noted for note in notes)


def test_the_markdown_report_begins_with_the_main_facts(folder: Path) -> None:
    file = forge(folder, with_directml(adapter="Contoso 1", driver="32.0.1"))
    done = verify_without_permission(folder, "--report", "markdown:page.md", file=file)
    assert done.returncode == 0
    rows = [
        line.strip("| ").split(" | ")[0]
        for line in (folder / "page.md").read_text("utf-8").splitlines()
        if line.startswith("| ") and line.strip("| ")
    ]
    assert rows[:6] == ["Device", "Driver", "DirectML", "Profile", "Waived", "Signed by"]
