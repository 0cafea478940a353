"""HRESULTs (the results of Windows calls) have names and meanings; GUIDs are read and stored.

The tested code is in `dmlconf/backends/directml/api/hresult.py` and
`dmlconf/backends/directml/api/guid.py`.
"""

from __future__ import annotations

import pytest

from dmlconf.backends.directml.api import hresult
from dmlconf.backends.directml.api.guid import GUID
from dmlconf.backends.directml.api.hresult import HRESULTS, HResultError

SIGNED_E_INVALIDARG = 0x80070057 - 2**32


def test_names_of_hresults_are_unique() -> None:
    names = [name for name, _ in HRESULTS.values()]
    assert len(set(names)) == len(names)


def test_every_listed_hresult_has_a_meaning_in_one_line() -> None:
    for name, meaning in HRESULTS.values():
        assert meaning, name
        assert "\n" not in meaning, name


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0x80070057, "E_INVALIDARG"),
        (SIGNED_E_INVALIDARG, "E_INVALIDARG"),
        (0, "S_OK"),
        (0x887A0005, "DXGI_ERROR_DEVICE_REMOVED"),
        (0x80041234, "0x80041234"),
        (-1, "0xFFFFFFFF"),
    ],
)
def test_hresult_is_named_or_written_in_hexadecimal(value: int, name: str) -> None:
    assert hresult.name(value) == name


def test_hresult_with_its_highest_bit_is_a_failure() -> None:
    assert hresult.failed(-1)
    assert hresult.failed(0x80004005)
    assert hresult.failed(1 << 31)
    assert not hresult.failed((1 << 31) - 1)
    assert not hresult.failed(0x087A0001)  # DXGI_STATUS_OCCLUDED.
    assert not hresult.failed(1)


def test_removal_of_the_device_is_recognised() -> None:
    # DEVICE_REMOVED, DEVICE_HUNG, DEVICE_RESET, DRIVER_INTERNAL_ERROR and DEVICE_REMOVED signed.
    for removed in (0x887A0005, 0x887A0006, 0x887A0007, 0x887A0020, 0x887A0005 - (1 << 32)):
        assert hresult.is_removal(removed), hex(removed)
    for other in (0x80070057, 0x887A0004, 0):  # E_INVALIDARG, DXGI_ERROR_UNSUPPORTED, S_OK.
        assert not hresult.is_removal(other), hex(other)


def test_error_message_has_call_name_and_known_meaning() -> None:
    assert str(HResultError("CreateOperator", SIGNED_E_INVALIDARG)) == (
        "CreateOperator: E_INVALIDARG (an argument is invalid)"
    )
    assert str(HResultError("Map", 0x80041234)) == "Map: 0x80041234"


def test_first_three_guid_fields_are_little_endian() -> None:
    guid = GUID.parse("6dbd6437-96fd-423f-a98c-ae5e7c2a573f")
    assert bytes(guid).hex() == "3764bd6dfd963f42a98cae5e7c2a573f"
    assert str(guid) == "6dbd6437-96fd-423f-a98c-ae5e7c2a573f"
    assert guid.Data1 == 0x6DBD6437


@pytest.mark.parametrize("text", ["IDMLDevice", "6dbd6437-96fd-423f-a98c-ae5e7c2a573"])
def test_parsing_a_guid_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="hexadecimal"):
        GUID.parse(text)
