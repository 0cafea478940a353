from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dmlconf.backends.directml import survey
from dmlconf.backends.directml.adapters import Adapter
from dmlconf.backends.directml.library import DirectMLFile
from dmlconf.backends.directml.survey import Survey, Surveyed
from dmlconf.backends.protocol import Capabilities
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.cli.devices_command import command
from dmlconf.cli.exit_codes import ExitCode
from dmlconf.tensors.datatypes import DataType
from tests.cli.process import dmlconf

FILE = DirectMLFile(Path("DirectML.dll"), "the option path", "1.15.4", "ab" * 32)
ARC = Adapter(0, "Intel Arc", 0x8086, 0x56A0, "31.0.101.1", "00000000:0000a1b2", 8 << 30, False)
WARP = Adapter(1, "Basic Render", 0x1414, 0x8C, None, "00000000:0000a1b3", 0, True)
LEVEL = Capabilities(FeatureLevel(6, 4), frozenset({DataType.FLOAT16, DataType.FLOAT32}))
FOUND = Survey(FILE, (Surveyed(ARC, LEVEL), Surveyed(WARP, None, "E_FAIL (it failed)")))


@pytest.fixture(autouse=True)
def devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "survey", lambda path: FOUND)


def test_devices_are_shown() -> None:
    done = CliRunner().invoke(command, ["--color", "never"], standalone_mode=False)
    assert done.return_value == ExitCode.SUCCESS
    lines = [line.rstrip() for line in done.output.splitlines()]
    assert lines == [
        "DirectML 1.15.4",
        "DirectML.dll, by the option path",
        f"SHA-256 {'ab' * 32}",
        "",
        "0  Intel Arc",
        "   kind            hardware",
        "   vendor, device  0x8086, 0x56a0",
        "   driver          31.0.101.1",
        "   LUID            00000000:0000a1b2",
        "   memory          8.0 GiB of its own",
        "   feature level   6_4",
        "   data types      FLOAT32 FLOAT16",
        "1  Basic Render",
        "   kind            software",
        "   vendor, device  0x1414, 0x008c",
        "   driver          unknown",
        "   LUID            00000000:0000a1b3",
        "   memory          0.0 GiB of its own",
        "   cannot be used  E_FAIL (it failed)",
    ]


def test_devices_are_listed_as_json() -> None:
    done = CliRunner().invoke(command, ["--json"], standalone_mode=False)
    listed = json.loads(done.output)
    assert listed["directml"] == {
        "path": "DirectML.dll", "origin": "the option path", "version": "1.15.4",
        "sha256": "ab" * 32,
    }  # fmt: skip
    first, second = listed["adapters"]
    assert (first["index"], first["description"], first["vendor_id"]) == (0, "Intel Arc", 0x8086)
    assert (first["feature_level"], first["data_types"]) == ("6_4", ["FLOAT32", "FLOAT16"])
    assert (second["feature_level"], second["refusal"]) == (None, "E_FAIL (it failed)")


def test_no_directml_ends_with_4_and_what_to_do(tmp_path: Path) -> None:
    done = dmlconf(tmp_path, "devices", "--directml", tmp_path / "DirectML.dll")
    assert (done.returncode, done.stdout) == (ExitCode.BACKEND, "")
    assert done.stderr.startswith("Error: DirectML was not found. Tried:\n  the option path: ")
    assert "Or name the file" in done.stderr or sys.platform == "darwin"
