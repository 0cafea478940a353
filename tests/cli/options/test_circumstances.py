"""`--circumstances` is refused or reported, never ignored, if a backend has no circumstances.

The tested code is in `dmlconf/cli/options/circumstances.py`, `dmlconf/cli/runs/run_target.py` and
`dmlconf/backends/circumstances.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.process import dmlconf_here, write


def test_unsupported_circumstances_give_exit_code_4(tmp_path: Path) -> None:
    write(tmp_path)
    done = dmlconf_here(tmp_path, "run", "tile.yaml", "--circumstances", "repeated,owned")
    assert done.returncode == 4
    assert "numpy does not support --circumstances repeated, owned: it supports none" in done.stderr


def test_all_circumstances_without_effect_are_reported(
    tmp_path: Path,
) -> None:
    write(tmp_path)
    done = dmlconf_here(tmp_path, "run", "tile.yaml", "--circumstances", "all")
    assert done.returncode == 0
    assert "numpy has no circumstances: --circumstances all has no effect" in done.stderr


@pytest.mark.parametrize("value", ["none", ""])
def test_a_run_without_circumstances_does_not_mention_them(value: str, tmp_path: Path) -> None:
    write(tmp_path)
    given = ("--circumstances", value) if value else ()
    done = dmlconf_here(tmp_path, "run", "tile.yaml", *given)
    assert (done.returncode, "circumstances" in done.stderr) == (0, False)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("twice", "'twice' is not a circumstance; choose from repeated, rebound"),
        ("all,owned", "all cannot be combined with other names"),
    ],
)
def test_wrong_circumstances_give_exit_code_2(value: str, message: str, tmp_path: Path) -> None:
    write(tmp_path)
    done = dmlconf_here(tmp_path, "run", "tile.yaml", "--circumstances", value)
    assert done.returncode == 2
    assert message in done.stderr


def test_circumstances_may_be_named_in_the_configuration_file(tmp_path: Path) -> None:
    write(tmp_path)
    (tmp_path / "dmlconf.toml").write_text('[run]\ncircumstances = ["owned"]\n', encoding="utf-8")
    done = dmlconf_here(tmp_path, "run", "tile.yaml")
    assert done.returncode == 4
    assert "it supports none" in done.stderr
