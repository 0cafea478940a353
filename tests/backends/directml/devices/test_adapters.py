"""Adapters are chosen by number or name, and one whose driver crashes is listed, too.

The tested code is in `dmlconf/backends/directml/devices/adapters.py`,
`dmlconf/backends/directml/api/dxcore.py`, `dmlconf/backends/directml/devices/survey.py` and
`dmlconf/backends/process_end.py`.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from dmlconf.backends.directml.api import library
from dmlconf.backends.directml.devices.adapters import Adapter, Adapters, choose_adapter
from dmlconf.backends.directml.devices.survey import survey
from dmlconf.backends.protocol import BackendError

WARP: Final = Adapter(
    0, "Microsoft Basic Render Driver", 0x1414, 0x8C, None, "00000000:00000001", 0, True
)
RADEON: Final = Adapter(
    1, "AMD Radeon RX 7900", 0x1002, 0x744C, "31.0.1.2", "00000000:00000002", 1 << 34, False
)
ARC: Final = Adapter(
    2, "Intel Arc A770", 0x8086, 0x56A0, "31.0.101.1", "00000000:00000003", 1 << 34, False
)
ADAPTERS: Final = (WARP, RADEON, ARC)


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("0", WARP),
        ("2", ARC),
        ("arc", ARC),
        ("warp", WARP),
        ("WARP", WARP),
        ("Radeon RX", RADEON),
    ],
)
def test_index_part_of_name_or_warp_chooses_an_adapter(wanted: str, chosen: Adapter) -> None:
    assert choose_adapter(wanted, ADAPTERS) is chosen


def test_the_first_hardware_adapter_is_chosen_by_default() -> None:
    assert choose_adapter(None, ADAPTERS) is RADEON


def test_a_software_adapter_is_chosen_if_there_is_no_other() -> None:
    assert choose_adapter(None, [WARP]) is WARP


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("3", "no adapter matches '3'"),
        ("GeForce", "no adapter matches 'GeForce'"),
        ("r", "several adapters match 'r'"),
    ],
)
def test_unknown_or_ambiguous_adapter_error_lists_all_adapters(wanted: str, message: str) -> None:
    with pytest.raises(BackendError) as caught:
        choose_adapter(wanted, ADAPTERS)
    assert str(caught.value).startswith(message)
    for adapter in ADAPTERS:
        assert f"adapter={adapter.index}: {adapter.description}" in str(caught.value)


def test_choosing_from_no_adapters_is_an_error() -> None:
    with pytest.raises(BackendError, match="no adapter supports Direct3D 12"):
        choose_adapter(None, [])


def test_memory_is_dedicated_plus_shared_or_unknown() -> None:
    assert replace(RADEON, shared_memory=1 << 30).memory == (1 << 34) + (1 << 30)
    assert RADEON.memory is None
    assert replace(WARP, shared_memory=1 << 30).memory is None


@pytest.fixture
def directml(wsl_folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The path of a stand-in for DirectML, with the two adapters of `native/standin.cpp`."""
    if sys.platform == "win32":
        pytest.skip("the stand-in for DXCore exists only on Linux")
    monkeypatch.setenv(library.LIBRARY_FOLDER_VARIABLE, str(wsl_folder))
    return str(wsl_folder / "libdirectml.so")


@pytest.mark.slow
def test_the_properties_of_dxcores_adapters_are_read(directml: str) -> None:
    with Adapters(library.load(directml)) as adapters:
        first, second = adapters.found
        assert adapters.native(second).address
    assert first == Adapter(
        index=0,
        description="Stand-in 0",
        vendor_id=0x10DE,
        device_id=0x2684,
        driver_version="31.0.101.2115",
        luid="00000001:00001234",
        dedicated_memory=6 << 30,
        software=False,
    )
    assert (second.index, second.driver_version, second.software) == (1, None, True)


@pytest.mark.slow
@pytest.mark.parametrize("dying", [0, 1])
def test_driver_crash_is_reported_only_for_its_adapter(
    directml: str, dying: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_DRIVER_DIES", f"Stand-in {dying}")
    first, second = survey(directml).adapters
    # The stand-in for Direct3D 12 refuses an adapter whose driver does not die.
    refusals = [str(first.refusal), str(second.refusal)]
    assert refusals[dying] == "while opening it, the process died of SIGABRT"
    assert "DXGI_ERROR_UNSUPPORTED" in refusals[1 - dying]


@pytest.mark.slow
def test_a_library_that_ends_its_process_is_reported(
    directml: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STANDIN_LIBRARY_DIES", "1")
    with pytest.raises(BackendError, match=r"DirectML: its process ended with exit code 9"):
        survey(directml)


def test_unusable_adapters_are_listed_with_the_reason(directml: str) -> None:
    actual = survey(directml)
    assert [one.adapter.index for one in actual.adapters] == [0, 1]
    for one in actual.adapters:
        assert one.capabilities is None
        assert "DXGI_ERROR_UNSUPPORTED" in str(one.refusal)
