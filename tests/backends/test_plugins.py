"""A plugin that shares its name with another backend is refused, and both owners are named.

The tested code is in `dmlconf/backends/plugins.py`, `dmlconf/backends/errors.py` and
`dmlconf/cli/commands/running/doctor.py`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.backends.installing import install_plugin
from tests.cli.process import dmlconf, environment, write


def install_faulty_zeros(folder: Path, distribution: str, backend: str) -> None:
    """Install a distribution whose plugin, named `backend`, behaves as `faulty:zeros`."""
    code = (
        "from dmlconf.backends.registry import create as other, parse\n"
        "def create(options):\n    return other(parse('faulty:zeros'))\n"
    )
    module = distribution.replace("-", "_")
    named = {"module": module, "distribution": distribution, "version": "1.2"}
    install_plugin(folder, backend, code=code, **named)


@pytest.fixture
def plugin_path(tmp_path: Path) -> dict[str, str]:
    """Return the variable PYTHONPATH with the folder `plugins`."""
    inherited = environment(tmp_path)["PYTHONPATH"]
    return {"PYTHONPATH": os.pathsep.join((str(tmp_path / "plugins"), inherited))}


@pytest.mark.slow
def test_two_plugins_with_one_name_are_refused_and_named(
    tmp_path: Path, plugin_path: dict[str, str]
) -> None:
    install_faulty_zeros(tmp_path / "plugins", "acme-dml", "fast")
    write(tmp_path)
    assert dmlconf(tmp_path, "run", "tile.yaml", "-b", "fast", "-q", **plugin_path).returncode == 1
    install_faulty_zeros(tmp_path / "plugins", "other-dml", "fast")
    done = dmlconf(tmp_path, "run", "tile.yaml", "-b", "fast", "-q", **plugin_path)
    assert done.returncode == 4
    assert "acme-dml 1.2 (acme_dml:create)" in done.stderr
    assert "other-dml 1.2 (other_dml:create)" in done.stderr
    assert dmlconf(tmp_path, "run", "tile.yaml", "-q", **plugin_path).returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("-b", "numpy")])
def test_plugin_named_as_a_built_in_backend_is_refused(
    tmp_path: Path, plugin_path: dict[str, str], arguments: tuple[str, ...]
) -> None:
    install_faulty_zeros(tmp_path / "plugins", "acme-dml", "numpy")
    write(tmp_path)
    done = dmlconf(tmp_path, "run", "tile.yaml", *arguments, **plugin_path)
    assert done.returncode == 4
    assert "dmlconf itself and acme-dml 1.2 (acme_dml:create) each have one" in done.stderr


@pytest.mark.slow
def test_doctor_lists_plugins_and_says_which_are_ambiguous(
    tmp_path: Path, plugin_path: dict[str, str]
) -> None:
    install_faulty_zeros(tmp_path / "plugins", "acme-dml", "fast")
    install_faulty_zeros(tmp_path / "plugins", "other-dml", "fast")
    install_faulty_zeros(tmp_path / "plugins", "third-dml", "third")
    done = dmlconf(tmp_path, "doctor", "--json", **plugin_path)
    found = {each["subject"]: each for each in json.loads(done.stdout)}
    assert found["plugin third"]["state"] == "ok"
    assert found["plugin third"]["told"] == "third-dml 1.2 (third_dml:create)"
    assert found["plugin fast"]["state"] == "absent"
    assert "acme-dml 1.2" in found["plugin fast"]["told"]
    assert "other-dml 1.2" in found["plugin fast"]["told"]
