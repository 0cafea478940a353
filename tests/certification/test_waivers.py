"""Certificates with waivers: known failures are judged again like everything else."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.certification.forging import Forgery, taken_apart
from tests.certification.suite import VENDOR, arguments, certified, furnished, spoken, verified
from tests.cli.process import dmlconf_here

CASE = "tile/matrix/stated-again"
BACKEND = "miniature:scaled,on=stated-again"
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


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = furnished(tmp_path_factory.mktemp("waivers"))
    (folder / "waivers.yaml").write_text(WAIVERS, encoding="utf-8")
    certified(folder, "--waivers", "waivers.yaml", "--key", "vendor.pem", backend=BACKEND)
    return folder


def forged(folder: Path, change: Callable[[Forgery], object]) -> CompletedProcess[str]:
    forgery = taken_apart(folder / "it.dmlcert")
    change(forgery)
    (folder / "forged.dmlcert").write_bytes(forgery.content(VENDOR))
    return verified(folder, "--key", "vendor.pub.pem", file="forged.dmlcert")


def test_a_waived_failure_is_certified_and_named(folder: Path) -> None:
    done = verified(folder, "--key", "vendor.pub.pem")
    assert done.returncode == 0, done.stdout
    assert f"Excused failures: waiver: a-tenth-off: 1 case: {CASE}" in spoken(done)
    assert "13 passed, 1 waived" in spoken(done)


def test_without_its_waiver_there_is_no_certificate(folder: Path) -> None:
    done = dmlconf_here(folder, *arguments("-o", "other.dmlcert", backend=BACKEND))
    assert done.returncode == 1
    assert CASE in done.stderr
    # What ran is kept, so the waiver can be added.
    more = ("--resume", "--waivers", "waivers.yaml")
    done = dmlconf_here(folder, *arguments("-o", "other.dmlcert", *more, backend=BACKEND))
    assert done.returncode == 0, done.stderr


def test_waivers_that_are_taken_out_leave_a_failure(folder: Path) -> None:
    done = forged(folder, lambda forgery: forgery.others.pop("waivers.yaml"))
    assert done.returncode == 1
    assert "the log says `waived` for `waiver`; the outcome is `failed`" in spoken(done)


def test_a_waiver_that_had_ended_on_the_day_of_the_run_is_stale(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        text = forgery.others["waivers.yaml"]
        forgery.others["waivers.yaml"] = text.replace(b"2099-12-31", b"2020-12-31")

    done = forged(folder, change)
    assert done.returncode == 1
    assert "`waiver expired`" in spoken(done)


def test_a_waiver_that_ended_since_is_reported(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        text = forgery.others["waivers.yaml"]
        forgery.others["waivers.yaml"] = text.replace(b"2099-12-31", b"2024-12-31")
        forgery.log[0]["started"] = forgery.log[-1]["finished"] = "2024-12-31T00:00:00+00:00"

    done = forged(folder, change)
    assert done.returncode == 0, done.stdout
    assert "was valid on the day of the run, but ended 2024-12-31" in spoken(done)


def test_waivers_of_other_devices_excuse_nothing(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        forgery.others["waivers.yaml"] += b'    devices: {adapters: ["Contoso*"]}\n'

    assert forged(folder, change).returncode == 1


def test_a_failure_beyond_the_bound_is_stale(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        text = forgery.others["waivers.yaml"]
        forgery.others["waivers.yaml"] = text.replace(b"elements: 4", b"elements: 3")

    done = forged(folder, change)
    assert done.returncode == 1
    assert "`fails worse than waived`" in spoken(done)


def test_a_file_that_is_no_list_of_waivers_is_refused(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        forgery.others["waivers.yaml"] = b"format: 1\nwaivers: all\n"

    done = forged(folder, change)
    assert done.returncode == 3
    assert "waivers.yaml:2" in spoken(done)


def test_a_day_that_is_none_is_refused(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        forgery.log[0]["started"] = "not a T day Z"

    assert forged(folder, change).returncode == 3
