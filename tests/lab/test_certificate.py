"""A certificate of real DirectML that was made in the lab holds outside of it.

The tested code is in `dmlconf/certification/making.py`, `dmlconf/certification/verification.py`,
`dmlconf/certification/replay.py`, `dmlconf/excuses/substrate.py` and `lab/substrate.yaml`.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.certification.forging import taken_apart
from tests.certification.suite import VENDOR, write_suite
from tests.cli.process import dmlconf_here
from tests.lab.running import command

pytestmark = pytest.mark.lab

SUBSTRATE = Path(__file__).parents[2] / "lab" / "substrate.yaml"


def verify(folder: Path, file: str) -> subprocess.CompletedProcess[str]:
    return dmlconf_here(
        folder,
        "verify",
        file,
        "suite",
        "--profile",
        "small.yaml",
        "--key",
        "vendor.pub.pem",
        "--challenge",
        "7",
        "--substrate",
        SUBSTRATE,
        "-q",
    )


def test_a_certificate_of_the_lab_holds_outside_of_it(
    tmp_path: Path,
) -> None:
    folder = write_suite(tmp_path / "place")
    arguments = (
        "certify",
        "suite",
        "-b",
        "directml",
        "--profile",
        "small.yaml",
        "--challenge",
        "7",
    )
    subprocess.run(
        command("run", "--", *arguments, "-o", "it.dmlcert"), cwd=folder, check=True, timeout=600
    )
    # The lab has no library for signatures.
    done = dmlconf_here(folder, "sign", "it.dmlcert", "--key", "vendor.pem")
    assert done.returncode == 0, done.stderr
    done = verify(folder, "it.dmlcert")
    assert done.returncode == 0, done.stdout
    assert re.search(r"^DirectML +1\.15\.4 *$", done.stdout, re.MULTILINE)
    forgery = taken_apart(folder / "it.dmlcert")
    output = forgery.line("/stated")["outputs"]["OutputTensor"]
    elements = forgery.elements(output)
    elements.view("uint32")[0] ^= 1
    forgery.store(output, elements)
    (folder / "wrong.dmlcert").write_bytes(forgery.content(VENDOR))
    done = verify(folder, "wrong.dmlcert")
    assert done.returncode == 1
    assert "tile/matrix/stated" in done.stdout
