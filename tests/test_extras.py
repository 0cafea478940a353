"""The command that dmlconf proposes to install an extra names its own checkout or wheel.

Where neither is known, it names no package and asks for a checkout.

The tested code is in `dmlconf/extras.py`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dmlconf.extras import install_command_from


def pip_record(place: Path, **rest: object) -> str:
    """Return the record (`direct_url.json`) in which pip keeps where a package came from."""
    return json.dumps({"url": place.as_uri(), **rest})


def test_command_names_the_checkout_of_dmlconf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "with spaces"
    checkout.mkdir()
    record = pip_record(checkout, dir_info={})
    assert install_command_from(record, "certify") == f"pip install '{checkout}[certify]'"
    editable = pip_record(checkout, dir_info={"editable": True})
    assert install_command_from(editable, "fleet") == f"pip install -e '{checkout}[fleet]'"
    monkeypatch.chdir(checkout)
    assert install_command_from(record, "certify") == "pip install '.[certify]'"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps the working folder")
def test_command_names_the_checkout_from_a_removed_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    command = install_command_from(pip_record(tmp_path, dir_info={}), "certify")
    assert command == f"pip install '{tmp_path}[certify]'"


def test_command_names_the_wheel_of_dmlconf(tmp_path: Path) -> None:
    wheel = tmp_path / "dmlconf-0.2.0-py3-none-any.whl"
    wheel.touch()
    record = pip_record(wheel, archive_info={"hash": "sha256=0"})
    assert install_command_from(record, "certify") == f"pip install '{wheel}[certify]'"


@pytest.mark.parametrize(
    "record",
    [
        None,
        "",
        "[]",
        "{}",
        '{"url": 5}',
        '{"url": "https://example.com/dmlconf.whl", "archive_info": {}}',
        '{"url": "file:///absent/dmlconf-0.2.0-py3-none-any.whl", "archive_info": {}}',
    ],
)
def test_command_of_unknown_origin_asks_for_a_checkout(record: str | None) -> None:
    """`dmlconf[certify]` is never named: no index has dmlconf, and a stranger may take the name."""
    command = install_command_from(record, "certify")
    assert command == "pip install '.[certify]' in a checkout of dmlconf"
