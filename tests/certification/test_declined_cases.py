"""A profile limits how many cases a certified backend may decline.

The tested code is in `dmlconf/certification/verification.py`, which `certify` and `verify` use, and
in `dmlconf/certification/profiles.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from dmlconf.resources import cases_directory
from tests.cli.process import dmlconf_here

PROFILE: Final = """
format: 1
profile: small
extends: 6_4
operators: [GATHER]
kinds: [documented]
max_declined: {most}
statuses:
  passed: any
  unsupported: [not expressible by the backend]
"""
"""A profile of the five documented cases of GATHER."""

GATHER: Final = str(cases_directory() / "gather")

DECLINING: Final = "faulty:declines,on=example-1"
"""A backend that declines one of these five cases, or 20%."""


def with_profile(folder: Path, most: str, *command: str) -> tuple[int, str]:
    """Run a command with PROFILE; return the exit code and the output in one line."""
    (folder / "small.yaml").write_text(PROFILE.format(most=most), encoding="utf-8")
    done = dmlconf_here(folder, *command, "--profile", "small.yaml")
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.slow
def test_too_many_declined_cases_fail_certify_and_verify(
    tmp_path: Path,
) -> None:
    certify = ("certify", GATHER, "-b", DECLINING, "-o", "it.dmlcert")
    code, text = with_profile(tmp_path, "19%", *certify)
    assert code == 1, text
    assert "1 of 5 cases (20%), more than the 19% of small" in text
    code, text = with_profile(tmp_path, "20%", *certify, "--resume")
    assert code == 0, text
    verify = ("verify", "it.dmlcert", GATHER, "--allow-backend", "faulty")
    code, text = with_profile(tmp_path, "20%", *verify)
    assert code == 0, text
    code, text = with_profile(tmp_path, "19%", *verify)
    assert code == 1, text
    assert "1 of 5 cases (20%), more than the 19% of small" in text
