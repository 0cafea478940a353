"""`dmlconf devices` shows all adapters in any terminal and as JSON.

The tested code is in `dmlconf/cli/commands/running/devices.py` and
`dmlconf/backends/directml/api/library.py`.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from dmlconf.backends.directml.api.library import DirectMLFile
from dmlconf.backends.directml.devices import survey
from dmlconf.backends.directml.devices.adapters import Adapter
from dmlconf.backends.protocol import Capabilities
from dmlconf.backends.survey import Survey, Surveyed
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.cli.common.exit_codes import ExitCode
from dmlconf.cli.entry_point import cli
from dmlconf.tensors.datatypes import DataType
from tests.cli.process import dmlconf

FILE = DirectMLFile(Path("DirectML.dll"), "the option path", "1.15.4", "ab" * 32)
ARC = Adapter(0, "Intel Arc", 0x8086, 0x56A0, "31.0.101.1", "00000000:0000a1b2", 8 << 30, False)
WARP = Adapter(1, "Basic Render", 0x1414, 0x8C, None, "00000000:0000a1b3", 0, True)
LEVEL = Capabilities(FeatureLevel(6, 4), frozenset({DataType.FLOAT16, DataType.FLOAT32}))
FOUND = Survey(FILE, (Surveyed(ARC, LEVEL), Surveyed(WARP, None, "E_FAIL (it failed)")))
"""An adapter that can be used, and one that cannot."""


@pytest.fixture(autouse=True)
def devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(survey, "survey", lambda path: FOUND)


def shown(columns: int) -> list[str]:
    environment = {"COLUMNS": str(columns)}
    arguments = ["devices", "--color", "never"]
    done = CliRunner().invoke(cli, arguments, env=environment, standalone_mode=False)
    assert done.return_value == ExitCode.SUCCESS
    return [line.rstrip() for line in done.output.splitlines()]


def test_narrow_terminals_show_a_record_for_each_adapter() -> None:
    assert shown(80) == [
        "DirectML 1.15.4",
        "DirectML.dll, by the option path",
        f"SHA-256 {'ab' * 32}",
        "",
        "0  Intel Arc",
        "   kind            hardware",
        "   vendor, device  0x8086, 0x56a0",
        "   driver          31.0.101.1",
        "   LUID            00000000:0000a1b2",
        "   memory          8.0 GiB dedicated",
        "   feature level   6_4",
        "   data types      FLOAT32 FLOAT16",
        "1  Basic Render",
        "   kind            software",
        "   vendor, device  0x1414, 0x008c",
        "   driver          unknown",
        "   LUID            00000000:0000a1b3",
        "   memory          0.0 GiB dedicated",
        "   cannot be used  E_FAIL (it failed)",
    ]


def test_wide_terminals_show_a_table() -> None:
    lines = shown(140)
    assert lines[:4] == [
        "DirectML 1.15.4",
        "DirectML.dll, by the option path",
        f"SHA-256 {'ab' * 32}",
        "",
    ]
    assert [re.split(r"  +", line) for line in (lines[4], *lines[6:])] == [
        ["", "Adapter", "Driver, LUID", "Memory", "Level", "Data types"],
        ["0", "Intel Arc", "31.0.101.1", "8.0 GiB", "6_4", "FLOAT32 FLOAT16"],
        ["", "hardware, vendor 0x8086, device 0x56a0", "00000000:0000a1b2"],
        ["1", "Basic Render", "unknown", "0.0 GiB", "-", "cannot be used: E_FAIL (it failed)"],
        ["", "software, vendor 0x1414, device 0x008c", "00000000:0000a1b3"],
    ]


@pytest.mark.parametrize("columns", [60, 80, 119, 120, 140])
def test_values_are_complete_and_lines_fit(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    every = Capabilities(FeatureLevel(6, 4), frozenset(DataType))
    described = replace(ARC, description="A graphics adapter whose name is longer than most names")
    refusal = "the device cannot be opened: D3D12CreateDevice: DXGI_ERROR_UNSUPPORTED"
    actual = Survey(FILE, (Surveyed(described, every), Surveyed(WARP, None, refusal)))
    monkeypatch.setattr(survey, "survey", lambda path: actual)
    adapters = shown(columns)[4:]
    assert max(map(len, adapters)) <= columns
    words = " ".join(adapters).split()
    wanted = f"{described.description} {refusal} {ARC.luid} {' '.join(DataType)}".split()
    assert not [word for word in wanted if word not in words]


@pytest.mark.parametrize("columns", [80, 140])
def test_unprintable_characters_of_a_refusal_are_escaped(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Survey(FILE, (Surveyed(WARP, None, "E_FAIL \x1b[2J"),))
    monkeypatch.setattr(survey, "survey", lambda path: refused)
    text = " ".join(shown(columns))
    assert "\x1b" not in text
    assert r"E_FAIL \x1b[2J" in text


def test_devices_are_listed_as_json() -> None:
    done = CliRunner().invoke(cli, ["devices", "--json"], standalone_mode=False)
    listed = json.loads(done.output)
    assert listed["directml"] == {
        "path": "DirectML.dll",
        "origin": "the option path",
        "version": "1.15.4",
        "sha256": "ab" * 32,
    }
    first, second = listed["adapters"]
    assert (first["index"], first["description"], first["vendor_id"]) == (0, "Intel Arc", 0x8086)
    assert (first["feature_level"], first["data_types"]) == ("6_4", ["FLOAT32", "FLOAT16"])
    assert (second["feature_level"], second["refusal"]) == (None, "E_FAIL (it failed)")


@pytest.mark.slow
def test_missing_directml_gives_exit_code_4_and_advice(tmp_path: Path) -> None:
    done = dmlconf(tmp_path, "devices", "--directml", tmp_path / "DirectML.dll")
    assert (done.returncode, done.stdout) == (ExitCode.BACKEND, "")
    assert done.stderr.startswith("Error: DirectML was not found. Tried:\n  the option path: ")
    assert "Or name the file" in done.stderr or sys.platform == "darwin"
