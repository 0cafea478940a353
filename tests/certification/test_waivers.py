"""A certificate may enclose waivers of a limited share of its cases; `verify` applies them again.

The tested code is in `dmlconf/certification/waived_limit.py`, `dmlconf/certification/replay.py`,
`dmlconf/certification/acceptance.py`, `dmlconf/certification/making.py`,
`dmlconf/certification/logged.py`, `dmlconf/certification/contents.py`,
`dmlconf/reports/verification.py`, `dmlconf/excuses/waivers.py` and
`dmlconf/cli/options/max_waived.py`.
"""

from __future__ import annotations

from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.certification import suite
from tests.certification.forging import Forgery, verify_forged
from tests.certification.suite import arguments, certify, printed_text, write_suite
from tests.cli.process import dmlconf_here

CASE = "tile/matrix/stated-again"
BACKEND = "faulty:scaled,on=stated-again"
"""A backend that multiplies the 4 elements of the output of `CASE` by 1.1."""

WAIVERS = f"""
format: 1
waivers:
  - name: a-tenth-off
    reason: All is a tenth too much.
    link: https://bugs.example.com/1
    until: 2099-12-31
    cases: [{CASE}]
    failure: wrong values
    bound: {{elements: 4}}
"""


LIMIT = ("--max-waived", "1")
"""Permits one waived case; the default, 1%, permits none of 14."""


def verify_with_limit(folder: Path, *more: str, file: str = "it.dmlcert") -> CompletedProcess[str]:
    return suite.verify(folder, *LIMIT, *more, file=file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a certificate `it.dmlcert` of `BACKEND`, which encloses `WAIVERS`."""
    folder = write_suite(tmp_path_factory.mktemp("waivers"))
    (folder / "waivers.yaml").write_text(WAIVERS, encoding="utf-8")
    more = ("--waivers", "waivers.yaml", "--key", "vendor.pem", *LIMIT)
    certify(folder, *more, backend=BACKEND)
    return folder


def test_a_waived_failure_is_certified_and_named(folder: Path) -> None:
    done = verify_with_limit(folder, "--key", "vendor.pub.pem")
    assert done.returncode == 0, done.stdout
    assert f"Excused failures: waiver: a-tenth-off: 1 case: {CASE}" in printed_text(done)
    assert "13 passed, 1 waived" in printed_text(done)


def test_a_failure_gives_no_certificate_until_it_is_waived(folder: Path) -> None:
    done = dmlconf_here(folder, *arguments("-o", "other.dmlcert", backend=BACKEND))
    assert done.returncode == 1
    assert CASE in done.stderr
    assert not (folder / "other.dmlcert").exists()
    # `--resume` takes the outcomes from the journal.
    more = ("--resume", "--waivers", "waivers.yaml", *LIMIT)
    done = dmlconf_here(folder, *arguments("-o", "other.dmlcert", *more, backend=BACKEND))
    assert done.returncode == 0, done.stderr


def test_a_certificate_whose_waivers_were_removed_fails_verification(folder: Path) -> None:
    done = verify_forged(folder, lambda forgery: forgery.others.pop("waivers.yaml"), *LIMIT)
    assert done.returncode == 1
    assert "the log says `waived` for `waiver`; the outcome is `failed`" in printed_text(done)


def test_a_waiver_that_ended_before_the_run_excuses_nothing(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        text = forgery.others["waivers.yaml"]
        forgery.others["waivers.yaml"] = text.replace(b"2099-12-31", b"2020-12-31")

    done = verify_forged(folder, change, *LIMIT)
    assert done.returncode == 1
    assert "`waiver expired`" in printed_text(done)


def test_a_waiver_that_ended_after_the_run_is_reported(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        text = forgery.others["waivers.yaml"]
        forgery.others["waivers.yaml"] = text.replace(b"2099-12-31", b"2024-12-31")
        forgery.log[0]["started"] = forgery.log[-1]["finished"] = "2024-12-31T00:00:00+00:00"

    done = verify_forged(folder, change, *LIMIT)
    assert done.returncode == 0, done.stdout
    assert "was valid on the day of the run, but ended 2024-12-31" in printed_text(done)


def test_waivers_for_other_devices_excuse_nothing(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        forgery.others["waivers.yaml"] += b'    devices: {adapters: ["Contoso*"]}\n'

    done = verify_forged(folder, change, *LIMIT)
    assert done.returncode == 1
    assert "the log says `waived` for `waiver`; the outcome is `failed`" in printed_text(done)


def test_a_waiver_whose_bound_is_exceeded_excuses_nothing(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        text = forgery.others["waivers.yaml"]
        forgery.others["waivers.yaml"] = text.replace(b"elements: 4", b"elements: 3")

    done = verify_forged(folder, change, *LIMIT)
    assert done.returncode == 1
    assert "`fails worse than waived`" in printed_text(done)
    assert "by a-tenth-off (waivers.yaml:4)" in printed_text(done)


def test_a_certificate_with_too_many_waived_cases_fails_verification(folder: Path) -> None:
    done = suite.verify(folder, "--key", "vendor.pub.pem")
    assert done.returncode == 1
    message = "waivers of the sender excuse 1 of 14 cases (7.14%), more than the 1% allowed"
    assert message in printed_text(done)
    for limit, code in (("0", 1), ("7.2%", 0), ("7.1%", 1), ("100%", 0)):
        done = suite.verify(folder, "--max-waived", limit)
        assert done.returncode == code, limit


@pytest.mark.parametrize("limit", ["some", "1.5", "101%", "-1"])
def test_a_malformed_limit_is_refused(folder: Path, limit: str) -> None:
    done = suite.verify(folder, f"--max-waived={limit}")
    assert done.returncode == 2
    assert "--max-waived" in done.stderr


def test_certify_with_too_many_waived_cases_gives_no_certificate(folder: Path) -> None:
    more = ("-o", "third.dmlcert", "--waivers", "waivers.yaml")
    done = dmlconf_here(folder, *arguments(*more, backend=BACKEND))
    assert done.returncode == 1
    assert "more than the 1% allowed" in done.stderr
    assert not (folder / "third.dmlcert").exists()


def test_a_waiver_of_all_cases_is_limited_and_noted(
    tmp_path: Path,
) -> None:
    """The backend fails all 14 cases but the invalid one."""
    write_suite(tmp_path)
    text = WAIVERS.replace(f"[{CASE}]", '["*"]').replace("elements: 4", "elements: 1000000000")
    # The invalid case passes; a waiver that is not intermittent would be stale.
    text += "    intermittent: true\n"
    (tmp_path / "waivers.yaml").write_text(text, encoding="utf-8")
    more = ("--waivers", "waivers.yaml", "--key", "vendor.pem", "--max-waived", "13")
    certify(tmp_path, *more, backend="faulty:scaled")
    done = suite.verify(tmp_path, "--key", "vendor.pub.pem", "--max-waived", "12")
    assert done.returncode == 1
    assert "waivers of the sender excuse 13 of 14 cases" in printed_text(done)
    done = suite.verify(tmp_path, "--key", "vendor.pub.pem", "--max-waived", "13")
    assert done.returncode == 0
    noted = printed_text(done).partition("Before you accept it:")[2]
    assert "up to 1e+09 wrong elements in an output, off by any amount" in noted
    assert "the waiver a-tenth-off is valid until 2099-12-31," in noted


def test_verify_names_the_largest_errors_that_waivers_excuse(folder: Path) -> None:
    done = verify_with_limit(folder, "--key", "vendor.pub.pem")
    noted = printed_text(done).partition("Before you accept it:")[2]
    assert "waivers of the sender excuse 1 of 14 cases (7.14%); they accept up to 4 wrong" in noted

    def change(forgery: Forgery) -> None:
        text = forgery.others["waivers.yaml"]
        forgery.others["waivers.yaml"] = text.replace(b"{elements: 4}", b"{ulp: 1000000000}")

    done = verify_forged(folder, change, *LIMIT)
    noted = printed_text(done).partition("Before you accept it:")[2]
    assert "any number of wrong elements in an output, off by up to 1e+09 ULP" in noted


def test_an_invalid_list_of_waivers_is_refused(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        forgery.others["waivers.yaml"] = b"format: 1\nwaivers: all\n"

    done = verify_forged(folder, change, *LIMIT)
    assert done.returncode == 3
    assert "waivers.yaml:2" in printed_text(done)


def test_a_run_without_a_valid_start_is_refused(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        # A text without T and Z is refused when the log is read.
        forgery.log[0]["started"] = "not a T day Z"

    done = verify_forged(folder, change, *LIMIT)
    assert done.returncode == 3
    assert "run.jsonl does not say on which day the run began" in printed_text(done)
