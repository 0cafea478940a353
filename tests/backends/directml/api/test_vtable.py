"""`ComObject` calls the methods of COM objects through their vtables.

The declared methods of Direct3D 12, DirectML, DXCore and DXGI have the slots that Windows uses.

The tested code is in `dmlconf/backends/directml/api/vtable.py`,
`dmlconf/backends/directml/api/d3d12.py`, `dmlconf/backends/directml/api/dml.py`,
`dmlconf/backends/directml/api/dxcore.py` and `dmlconf/backends/directml/api/dxgi.py`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dmlconf.backends.directml.api import d3d12, dml, dxcore, dxgi, vtable
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.vtable import (
    IUNKNOWN,
    NEW_OBJECT,
    ComObject,
    Interface,
    Method,
    NativeCrashError,
    new_object,
    uncalled,
)

U32: Final = ctypes.c_uint32
U64: Final = ctypes.c_uint64


class Pair(ctypes.Structure):
    """The 16 bytes that `Sixteen` returns."""

    _fields_ = (("first", U64), ("second", U64))


class Large(ctypes.Structure):
    """The 56 bytes that `FiftySix` returns."""

    _fields_ = (("words", U64 * 7),)


RETURNS: Final = Interface(
    "IReturns",
    "00000000-0000-0000-0000-000000000001",
    IUNKNOWN,
    (
        Method("Eight", (), d3d12.LUID),
        Method("Sixteen", (U64,), Pair),
        Method("TwentyFour", (), dml.DML_BINDING_PROPERTIES),
        Method("FiftySix", (U32, U64), Large),
        Method("Fail", (U32,)),
        Method("Sum", (U32, U64, ctypes.POINTER(U64)), U64),
        Method("Make", (U32, *NEW_OBJECT)),
    ),
)
"""The interface of the objects in `native/standin.cpp`, each of which has a number.

`Sixteen` returns a structure of 16 bytes, made of that number, the arguments and constants.
"""


@pytest.fixture(scope="module")
def library(wsl_folder: Path) -> ctypes.CDLL:
    """A library that makes objects of `RETURNS`, and counts those that are alive."""
    loaded = ctypes.CDLL(str(wsl_folder / "libother.so"))
    loaded.standin_returns.restype = ctypes.c_void_p
    return loaded


@pytest.fixture
def returns(library: ctypes.CDLL) -> Iterator[ComObject]:
    """An object with the number 7; its test must release every other object that it makes."""
    before = library.standin_alive()
    with ComObject(RETURNS, library.standin_returns(7)) as result:
        yield result
    assert library.standin_alive() == before


def test_a_structure_of_8_bytes_is_returned(returns: ComObject) -> None:
    luid = returns.call("Eight")
    assert (luid.LowPart, luid.HighPart) == (7, -2)


def test_a_structure_of_16_bytes_is_returned(returns: ComObject) -> None:
    pair = returns.call("Sixteen", 1 << 50)
    assert (pair.first, pair.second) == (1 << 50, 7)


def test_a_structure_of_24_bytes_is_returned(returns: ComObject) -> None:
    needs = returns.call("TwentyFour")
    assert needs.RequiredDescriptorCount == 7
    assert (needs.TemporaryResourceSize, needs.PersistentResourceSize) == (1 << 40, 3)


def test_a_structure_of_56_bytes_is_returned(returns: ComObject) -> None:
    assert list(returns.call("FiftySix", 1, 7).words) == [1, 2, 3, 4, 5, 6, 7]


def test_a_method_receives_its_arguments(returns: ComObject) -> None:
    assert returns.call("Sum", 1, 1 << 40, ctypes.byref(U64(5))) == (1 << 40) + 6


def test_a_failing_hresult_raises_an_error_that_names_the_call(returns: ComObject) -> None:
    assert returns.call("Fail", 1) is None
    with pytest.raises(HResultError) as caught:
        returns.call("Fail", 0x80070057)
    assert (caught.value.call, caught.value.name) == ("Fail", "E_INVALIDARG")


def test_a_created_object_is_released_exactly_once(
    library: ctypes.CDLL, returns: ComObject
) -> None:
    before = library.standin_alive()
    with returns.create("Make", RETURNS, 9) as actual:
        assert library.standin_alive() == before + 1
        assert actual.call("Eight").LowPart == 9
    actual.release()
    assert library.standin_alive() == before


def test_creating_an_object_that_is_null_is_an_error(returns: ComObject) -> None:
    with pytest.raises(HResultError, match="E_POINTER"):
        returns.create("Make", RETURNS, 0)


def test_success_without_an_object_is_an_error() -> None:
    with pytest.raises(HResultError, match="MakeNothing: E_POINTER"):
        new_object("MakeNothing", lambda *_: 0, RETURNS)


def test_crash_in_release_is_a_native_crash(
    library: ctypes.CDLL, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(this: int) -> int:
        raise OSError("exception: access violation reading 0x0000000000000008")

    actual = ComObject(RETURNS, library.standin_returns(1))
    with monkeypatch.context() as patched:
        patched.setattr(vtable, "method_type", lambda method: lambda address: crash)
        with pytest.raises(NativeCrashError, match="Release: exception: access violation"):
            actual.release()
    actual.release()  # The simulated crash released nothing.


def test_calling_a_released_object_is_an_error(library: ctypes.CDLL) -> None:
    actual = ComObject(RETURNS, library.standin_returns(1))
    actual.release()
    with pytest.raises(ValueError, match="IReturns was released"):
        actual.call("Eight")


def test_calling_a_method_without_declared_parameters_is_an_error(library: ctypes.CDLL) -> None:
    interface = Interface("IOther", RETURNS.iid, IUNKNOWN, uncalled("Eight"))
    with (
        ComObject(interface, library.standin_returns(1)) as actual,
        pytest.raises(TypeError, match="Eight has no declared parameters"),
    ):
        actual.call("Eight")


@pytest.mark.parametrize(
    ("interface", "slots"),
    [  # Slots are counted from 0; IUnknown has the first three.
        (
            dml.IDML_DEVICE,
            {
                "CheckFeatureSupport": 7,
                "CreateOperator": 8,
                "CompileOperator": 9,
                "CreateBindingTable": 12,
                "GetDeviceRemovedReason": 15,
            },
        ),
        (dml.IDML_DEVICE1, {"CompileGraph": 17}),
        (dml.IDML_COMPILED_OPERATOR, {"GetBindingProperties": 8}),
        (dml.IDML_OPERATOR_INITIALIZER, {"GetBindingProperties": 8, "Reset": 9}),
        (dml.IDML_BINDING_TABLE, {"BindInputs": 8, "BindPersistentResource": 11, "Reset": 12}),
        (dml.IDML_COMMAND_RECORDER, {"RecordDispatch": 8}),
        (
            d3d12.ID3D12_DEVICE,
            {
                "CreateCommandQueue": 8,
                "CreateCommandList": 12,
                "CreateDescriptorHeap": 14,
                "CreateCommittedResource": 27,
                "CreateFence": 36,
                "GetDeviceRemovedReason": 37,
                "GetAdapterLuid": 43,
            },
        ),
        (d3d12.ID3D12_COMMAND_QUEUE, {"ExecuteCommandLists": 10, "Signal": 14}),
        (
            d3d12.ID3D12_GRAPHICS_COMMAND_LIST,
            {
                "Close": 9,
                "Reset": 10,
                "CopyBufferRegion": 15,
                "ResourceBarrier": 26,
                "SetDescriptorHeaps": 28,
            },
        ),
        (d3d12.ID3D12_FENCE, {"GetCompletedValue": 8, "SetEventOnCompletion": 9}),
        (d3d12.ID3D12_RESOURCE, {"Map": 8, "Unmap": 9, "GetGPUVirtualAddress": 11}),
        (
            d3d12.ID3D12_DESCRIPTOR_HEAP,
            {"GetCPUDescriptorHandleForHeapStart": 9, "GetGPUDescriptorHandleForHeapStart": 10},
        ),
        (dxgi.IDXGI_FACTORY1, {"EnumAdapters1": 12}),
        (dxgi.IDXGI_ADAPTER1, {"CheckInterfaceSupport": 9, "GetDesc1": 10}),
        (dxcore.IDXCORE_ADAPTER, {"GetProperty": 6, "GetPropertySize": 7}),
    ],
    ids=lambda value: value.name if isinstance(value, Interface) else "",
)
def test_methods_have_the_slots_that_windows_gives_them(
    interface: Interface, slots: dict[str, int]
) -> None:
    assert {name: interface.slots[name][0] for name in slots} == slots
