"""`dmlconf certify` writes certificates, or says why not, and `dmlconf sign` signs them.

Until the certificate is written, the journal `it.dmlcert.partial` keeps the outcomes.

The tested code is in `dmlconf/certification/making.py`, `dmlconf/certification/certificate.py`,
`dmlconf/certification/journal.py`, `dmlconf/certification/outcomes.py`,
`dmlconf/certification/profiles.py`, `dmlconf/certification/verification.py`,
`dmlconf/certification/acceptance.py`, `dmlconf/certification/findings.py`,
`dmlconf/cli/commands/certificates/certify.py`, `dmlconf/cli/commands/certificates/sign.py`,
`dmlconf/certification/keys.py` and `dmlconf/reports/verification.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from dmlconf.cli.common.exit_codes import ExitCode
from tests.cases.suites import replace_once
from tests.certification.forging import members, taken_apart
from tests.certification.suite import (
    BACKEND,
    PROFILE,
    arguments,
    certify,
    printed_text,
    verify,
    write_suite,
)
from tests.cli.process import DMLCONF, beginning, dmlconf_here, environment, text_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_suite(tmp_path / "place")


def test_certify_writes_a_certificate_and_deletes_its_journal(folder: Path) -> None:
    certify(folder, "--key", "vendor.pem")
    done = verify(folder, "--key", "vendor.pub.pem")
    assert done.returncode == 0, done.stdout
    assert "14 cases were judged again" in printed_text(done)
    assert not (folder / "it.dmlcert.partial").exists()


@pytest.mark.slow
def test_certificates_of_equal_outcomes_differ_only_in_dates(folder: Path) -> None:
    first = taken_apart(certify(folder))
    second = taken_apart(certify(folder, "-j", "2"))
    for forgery in (first, second):
        forgery.log[0]["started"] = forgery.log[-1]["finished"] = "2026-01-01T00:00:00+00:00"
    assert first.content() == second.content()


def test_equal_outputs_of_two_cases_are_stored_once(folder: Path) -> None:
    forgery = taken_apart(certify(folder))
    stated = forgery.line("/stated")["outputs"]["OutputTensor"]
    assert forgery.elements(stated).tolist() == [1, 2, 1, 2]
    outputs = [
        output for line in forgery.outcomes[1:] for output in line.get("outputs", {}).values()
    ]
    digests = [output.get("stored", output["sha256"]) for output in outputs]
    assert len(set(digests)) == len(digests) - 1  # `stated-again` has the outputs of `stated`.
    stored = members(folder / "it.dmlcert")["outputs.bin"]
    assert len(stored) == sum(map(len, forgery.blobs.values()))


@pytest.mark.slow
def test_another_challenge_chooses_another_sample_of_a_large_output(folder: Path) -> None:
    path = folder / "suite" / "matrix.yaml"
    # A challenge changes random inputs, but not a sequence.
    changing, fixed = "uniform: {low: -1, high: 1, seed: 5}", "sequence: {period: 20000}"
    path.write_text(replace_once(path.read_text("utf-8"), changing, fixed), "utf-8")
    outputs = [
        taken_apart(certify(folder, *challenge)).line("/large")["outputs"]["OutputTensor"]
        for challenge in ((), ("--challenge", "1"), ("--challenge", "2"))
    ]
    assert [output["sizes"] for output in outputs] == [[40000]] * 3
    assert [output["sample"] for output in outputs] == [4096] * 3
    assert len({output["sha256"] for output in outputs}) == 1
    assert len({output["stored"] for output in outputs}) == 3


@pytest.mark.slow
def test_a_certificate_holds_for_no_challenge_but_its_own(folder: Path) -> None:
    certify(folder, "--challenge", "77")
    assert verify(folder, "--challenge", "77").returncode == 0
    done = verify(folder, "--challenge", "78")
    assert done.returncode == 1
    assert "it was made for challenge 77, not for challenge 78" in printed_text(done)
    certify(folder)
    assert "made for no challenge" in printed_text(verify(folder, "--challenge", "77"))


@pytest.mark.parametrize("fault", ["zeros", "crash", "rejects", "scaled"])
def test_disallowed_verdicts_give_no_certificate(folder: Path, fault: str) -> None:
    done = dmlconf_here(folder, *arguments("-o", "it.dmlcert", backend=f"faulty:{fault},on=gemm"))
    assert done.returncode == 1, done.stderr
    assert "gemm/matrix" in done.stderr
    assert not (folder / "it.dmlcert").exists()


@pytest.mark.breakdown
@pytest.mark.parametrize(
    "damaged",
    [
        {},
        {"line": []},
        {"line": {"case": "tile"}},
        {"contents": {}},
        {"contents": {"a": "AAAA"}},
        {"contents": {"a": "!"}},
        {"contents": 7},
        [],
        "[" * 200_000,
    ],
)
def test_a_damaged_outcome_in_the_journal_is_run_again(folder: Path, damaged: object) -> None:
    journal = folder / "it.dmlcert.partial"
    command = arguments("-o", "it.dmlcert", backend="faulty:crash,on=stated-again")
    assert dmlconf_here(folder, *command).returncode == 1
    lines = journal.read_text("utf-8").splitlines()
    number = next(i for i, line in enumerate(lines) if '"case":"tile/matrix/stated"' in line)
    if isinstance(damaged, dict) and damaged:
        damaged = {**json.loads(lines[number]), **damaged}
    lines[number] = damaged if isinstance(damaged, str) else json.dumps(damaged)
    journal.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = dmlconf_here(folder, *command, "--resume")
    assert done.returncode == 1, done.stderr
    assert "1 case:\n  tile/matrix/stated-again" in done.stderr
    # The journal had a header and 14 outcomes.
    again = [json.loads(line)["line"]["case"] for line in text_of(journal).splitlines()[15:]]
    assert again == ["tile/matrix/stated", "tile/matrix/stated-again"]


def certify_with_limited_files(
    folder: Path, size: int, *more: str
) -> subprocess.CompletedProcess[str]:

    def limited() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    command = [*DMLCONF, *arguments("-o", "it.dmlcert", *more)]
    # Python must not write incomplete .pyc files.
    own = environment(folder, PYTHONDONTWRITEBYTECODE="1")
    return subprocess.run(
        command,
        cwd=folder,
        env=own,
        preexec_fn=limited,
        timeout=120,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the size of files")
def test_a_journal_is_continued_after_a_write_failed(folder: Path) -> None:
    done = certify_with_limited_files(folder, 4096)  # Too few for the journal.
    assert done.returncode == ExitCode.INCOMPLETE, done.stderr
    assert "it.dmlcert.partial can no longer be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    again = dmlconf_here(folder, *arguments("-o", "it.dmlcert", "--resume"))
    assert again.returncode == 0, again.stderr


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the size of files")
def test_resume_writes_the_certificate_that_could_not_be_written(folder: Path) -> None:
    # These random bytes are in the certificate, which gets too large, but not in the journal.
    noise = "".join(f"# {Random(line).randbytes(40).hex()}\n" for line in range(4000))
    statement = f"vendor: Example\nproduct: Adapter\n{noise}"
    (folder / "statement.yaml").write_text(statement, encoding="utf-8")
    more = ("--statement", "statement.yaml")
    done = certify_with_limited_files(folder, 100_000, *more)
    assert done.returncode == ExitCode.OUTPUT, done.stderr
    assert "it.dmlcert: File too large" in done.stderr
    assert "The outcomes are kept: --resume writes the certificate" in done.stderr
    assert not list(folder.glob("*.dmlcert"))
    again = dmlconf_here(folder, *arguments("-o", "it.dmlcert", "--resume", *more))
    assert again.returncode == 0, again.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_a_journal_that_is_a_named_pipe_is_refused(folder: Path) -> None:
    os.mkfifo(folder / "it.dmlcert.partial")
    done = dmlconf_here(folder, *arguments("-o", "it.dmlcert"))
    assert done.returncode == 2
    assert "it.dmlcert.partial is not a regular file" in done.stderr


def test_a_device_below_the_profiles_level_gets_no_certificate(folder: Path) -> None:
    done = dmlconf_here(folder, *arguments("-o", "it.dmlcert", backend="faulty:level=1_0"))
    assert done.returncode == ExitCode.INCOMPLETE
    assert "profile small needs feature level 6_4; the device has 1_0" in done.stderr
    assert not list(folder.glob("it.dmlcert*"))


@pytest.mark.slow
def test_only_resume_continues_an_interrupted_certification(
    folder: Path,
) -> None:
    import signal
    import time

    process = beginning(folder, *arguments("-o", "it.dmlcert", backend="faulty:slow,seconds=0.2"))
    journal = folder / "it.dmlcert.partial"
    deadline = time.monotonic() + 60
    while text_of(journal).count("\n") < 3:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == ExitCode.INCOMPLETE, err
    assert "add --resume to continue" in err
    assert not (folder / "it.dmlcert").exists()
    outcomes = journal.read_bytes().count(b"\n") - 1  # The first line is a header.
    assert 2 <= outcomes < 14
    again = arguments("-o", "it.dmlcert", backend="faulty:slow,seconds=0.2")
    refused = dmlconf_here(folder, *again)
    assert refused.returncode == 2
    assert "add --resume to continue it" in refused.stderr
    journal.write_bytes(journal.read_bytes() + b'{"line": {"case": "cut')
    other = dmlconf_here(folder, *arguments("-o", "it.dmlcert", "--resume"))
    assert other.returncode == 2
    assert "was started with another backend" in other.stderr
    done = dmlconf_here(folder, *again, "--resume")
    assert done.returncode == 0, done.stderr
    assert verify(folder).returncode == 0
    assert not journal.exists()


def test_a_certificate_names_the_recordings_environment(
    folder: Path,
) -> None:
    done = dmlconf_here(folder, "record", "suite", "-b", BACKEND, "-o", "it.dmlrec")
    assert done.returncode == 0, done.stderr
    certify(folder, backend="recording:it.dmlrec")
    forgery = taken_apart(folder / "it.dmlcert")
    assert forgery.predicate["source"]["kind"] == "recording"
    assert forgery.predicate["environment"]["backend"] == "faulty"
    assert str(folder) not in json.dumps(forgery.statement)
    done = verify(folder)
    assert done.returncode == 0, done.stdout
    assert "it is of an earlier recording, not of a run" in printed_text(done)


def test_a_recording_that_lacks_cases_gives_no_certificate(folder: Path) -> None:
    dmlconf_here(folder, "record", "suite", "-b", BACKEND, "-o", "it.dmlrec", "-k", "not large")
    done = dmlconf_here(folder, *arguments("-o", "it.dmlcert", backend="recording:it.dmlrec"))
    assert done.returncode == ExitCode.INCOMPLETE
    assert "1 of 14 cases have no outcome in the recording:\n  tile/matrix/large" in done.stderr
    assert not list(folder.glob("it.dmlcert*"))


@pytest.mark.slow
def test_two_parties_sign_a_certificate_after_it_was_made(folder: Path) -> None:
    certify(folder)
    assert "it is not signed" in printed_text(verify(folder))
    assert verify(folder, "--key", "vendor.pub.pem").returncode == 3
    for name in ("vendor", "second"):
        done = dmlconf_here(folder, "sign", "it.dmlcert", "--key", f"{name}.pem")
        assert done.returncode == 0, done.stderr
    keys = ("--key", "vendor.pub.pem", "--key", "second.pub.pem")
    trusted = verify(folder, *keys)
    assert trusted.returncode == 0
    for name in ("vendor", "second"):
        assert f"({name}.pub.pem, given with --key)" in printed_text(trusted)
    done = verify(folder)
    assert done.returncode == 0
    assert printed_text(done).count("(an enclosed key)") == 2
    assert "nobody vouches for whose they are" in printed_text(done)
    done = verify(folder, *keys, "--key", "outsider.pub.pem")
    assert done.returncode == 3
    assert "signed, but not with this key: not by " in printed_text(done)


def test_a_key_cannot_sign_twice(folder: Path) -> None:
    certify(folder, "--key", "vendor.pem")
    before = (folder / "it.dmlcert").read_bytes()
    done = dmlconf_here(folder, "sign", "it.dmlcert", "--key", "vendor.pem")
    assert done.returncode == 2
    assert "has signed the certificate already" in done.stderr
    assert (folder / "it.dmlcert").read_bytes() == before


def test_a_changed_certificate_is_not_signed(folder: Path) -> None:
    path = certify(folder)
    changed = bytearray(path.read_bytes())
    changed[len(changed) // 2] ^= 1
    path.write_bytes(bytes(changed))
    done = dmlconf_here(folder, "sign", "it.dmlcert", "--key", "vendor.pem")
    assert done.returncode == 3
    assert "it.dmlcert: " in done.stderr
    assert path.read_bytes() == changed


def test_a_vendors_statement_is_enclosed_and_needs_a_product(
    folder: Path,
) -> None:
    text = "vendor: Example\nproduct: Device 1\ntext: It is fast.\n"
    (folder / "statement.yaml").write_text(text, encoding="utf-8")
    certify(folder, "--statement", "statement.yaml", "--key", "vendor.pem")
    assert members(folder / "it.dmlcert")["statement.yaml"].decode() == text
    assert "Vendor (according to the sender) Example" in printed_text(verify(folder))
    (folder / "statement.yaml").write_text("vendor: Example\n", encoding="utf-8")
    done = dmlconf_here(folder, *arguments("-o", "other.dmlcert", "--statement", "statement.yaml"))
    assert done.returncode == 3
    assert "`product` is missing" in done.stderr


def test_certify_refuses_wrong_options_and_profiles(
    folder: Path,
) -> None:
    for extra, code, message in (
        (("-o", "it.zip"), 2, "it.zip does not end in .dmlcert"),
        (("-o", "vendor.pub.pem/it.dmlcert"), 2, "-o vendor.pub.pem/it.dmlcert: Not a dir"),
        (("-o", "it.dmlcert", "--key", "vendor.pub.pem"), 2, "is not a private key"),
        (("-o", "it.dmlcert", "--statement", "none.yaml"), 2, "--statement none.yaml"),
    ):
        done = dmlconf_here(folder, *arguments(*extra))
        assert done.returncode == code
        assert message in done.stderr
    (folder / "small.yaml").write_text(PROFILE + "operators: [ABC]\n", encoding="utf-8")
    done = dmlconf_here(folder, *arguments("-o", "it.dmlcert"))
    assert done.returncode == 3
    assert "the catalogue has no operator ABC" in done.stderr


def test_verify_refuses_a_certificate_without_its_last_100_bytes(folder: Path) -> None:
    certify(folder)
    (folder / "cut.dmlcert").write_bytes((folder / "it.dmlcert").read_bytes()[:-100])
    cut = dmlconf_here(folder, "verify", "cut.dmlcert")
    assert cut.returncode == 3
    assert cut.stdout.startswith("Why it does not hold:\n  not a certificate")


@pytest.mark.hostile  # It reads the whole suite.
def test_verify_asks_for_the_paths_of_other_cases(folder: Path) -> None:
    certify(folder)
    other = dmlconf_here(folder, "verify", "it.dmlcert", "--allow-backend", "faulty", "-q")
    assert other.returncode == 1
    assert "give the PATHS of the cases that it was made from, or verify it with" in printed_text(
        other
    )
