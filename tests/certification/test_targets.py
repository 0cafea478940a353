"""A profile limits how many cases a certified backend may be unable to express.

The tested code is in `dmlconf/certification/profiles.py` and
`dmlconf/certification/verification.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

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

GATHER: Final = str(cases_directory() / "gather")

DECLINING: Final = "faulty:declines,on=example-1"


def certify(folder: Path, most: str) -> tuple[int, str]:
    """Certify with a profile that permits this share of inexpressible cases.

    Return the exit code and what was printed.
    """
    (folder / "small.yaml").write_text(PROFILE.format(most=most), encoding="utf-8")
    done = dmlconf_here(
        folder,
        *(
            "certify",
            GATHER,
            "-b",
            DECLINING,
            "--profile",
            "small.yaml",
            "-o",
            f"{most[:-1]}.dmlcert",
        ),
    )
    return done.returncode, done.stdout + done.stderr


def test_a_profile_says_how_many_cases_a_backend_may_be_unable_to_express(tmp_path: Path) -> None:
    code, text = certify(tmp_path, "1%")
    assert code == 1, text
    assert "more than the 1% of small" in " ".join(text.split())
    code, text = certify(tmp_path, "90%")
    assert code == 0, text
    done = dmlconf_here(
        tmp_path,
        *("verify", "90.dmlcert", GATHER, "--profile", "small.yaml", "--allow-backend", "faulty"),
    )
    assert done.returncode == 0, done.stdout + done.stderr
