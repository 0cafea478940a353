"""The checks of `dmlconf devices --check`.

Each check returns what it observed, or raises `CheckFailedError` or `DeclinedError`. After any
other error, such as a failed call, its result is `broken`.

Sources: the pages of DMLCreateDevice1, IDMLDevice::CheckFeatureSupport, DML_FEATURE,
IDMLDevice::GetDeviceRemovedReason and ID3D12Device5::RemoveDevice. Answers for levels that a
DirectML does not define were measured on 1.8.0 to 1.15.4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Final

import numpy as np

from dmlconf.backends.directml.api import d3d12, dml
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.library import Libraries
from dmlconf.backends.directml.api.structs import data_type_value
from dmlconf.backends.directml.api.vtable import ComObject
from dmlconf.backends.directml.devices.device import Device, create_dml
from dmlconf.backends.directml.dispatch.batch import Batch
from dmlconf.backends.directml.dispatch.executor import Executor
from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import DataType

__all__ = ["CHECKS", "CheckFailedError", "DeclinedError", "DeviceUnderTest"]

TIMES: Final = 100
"""How often a device is created and released."""

_UNKNOWN_LEVEL: Final = 0xF000
"""A feature level that no version of DirectML has."""


class CheckFailedError(Exception):
    """A device did something that it must not do."""


class DeclinedError(Exception):
    """A device declined something that it may decline, such as a data type."""


@dataclass(frozen=True, slots=True)
class DeviceUnderTest:
    """The adapter whose devices a check tests, and what is needed to open and use its devices.

    Attributes:
        identities: cases of ELEMENT_WISE_IDENTITY at feature level 1_0. A check may run the first
            whose data types the device supports.
    """

    libraries: Libraries
    adapter: ComObject
    identities: tuple[Case, ...]

    def device(self) -> Device:
        """Open a device; `BackendError` if it cannot be opened."""
        return Device(self.libraries, self.adapter)


def _minimum_levels(tested: DeviceUnderTest) -> str:
    """DMLCreateDevice1 accepts every minimum up to the highest level.

    It refuses higher ones with DXGI_ERROR_UNSUPPORTED.
    """
    with _opened(tested) as device:
        highest = device.highest_of(dml.FEATURE_LEVELS)
        for level in (*dml.FEATURE_LEVELS, _UNKNOWN_LEVEL):
            refusal = None
            try:
                create_dml(tested.libraries, device.d3d, level).release()
            except HResultError as error:
                refusal = error
            if level <= highest and refusal is not None:
                raise CheckFailedError(
                    f"a device of {_level(highest)} refuses minimum {_level(level)}: {refusal}"
                )
            if level > highest and refusal is None:
                raise CheckFailedError(
                    f"a device of {_level(highest)} accepts minimum {_level(level)}"
                )
            if refusal is not None and refusal.name != "DXGI_ERROR_UNSUPPORTED":
                raise CheckFailedError(
                    f"minimum {_level(level)} is refused with {refusal.name} instead of "
                    "DXGI_ERROR_UNSUPPORTED"
                )
        return f"accepts every minimum up to {_level(highest)}, and no higher one"


def _feature_queries(tested: DeviceUnderTest) -> str:
    """CheckFeatureSupport returns the highest supported level of a query, in whichever order.

    It refuses a query of the wrong size.
    """
    with _opened(tested) as device:
        highest = device.highest_of(dml.FEATURE_LEVELS)
        for count in range(1, len(dml.FEATURE_LEVELS) + 1):
            asked = dml.FEATURE_LEVELS[:count]
            for order in (asked, asked[::-1], asked):
                expected = max(level for level in asked if level <= highest)
                answer = device.highest_of(order)
                if answer != expected:
                    raise CheckFailedError(
                        f"queried for levels up to {_level(asked[-1])}, it returns "
                        f"{_level(answer)}, not {_level(expected)}"
                    )
        _refuses_other_sizes(device)
        return f"{_level(highest)} is the highest level in every query"


def _data_types(tested: DeviceUnderTest) -> str:
    """CheckFeatureSupport answers 0 or 1 for each data type that it knows, alike on two devices.

    At least one data type is supported. A device may decline FLOAT32 or FLOAT16.
    """
    with _opened(tested) as one, _opened(tested) as other:
        answers = [_types(device) for device in (one, other)]
        if answers[0] != answers[1]:
            raise CheckFailedError("two devices of the same adapter support different data types")
        names = [str(kind) for kind, supported in answers[0].items() if supported]
        if not names:
            raise CheckFailedError("it supports no data type")
        lacking = [
            str(kind) for kind in (DataType.FLOAT32, DataType.FLOAT16) if not answers[0].get(kind)
        ]
        if lacking:
            raise DeclinedError(f"it lacks {' and '.join(lacking)}; it has {', '.join(names)}")
        return f"{len(names)} of {len(DataType)} data types"


def _two_devices(tested: DeviceUnderTest) -> str:
    """Two IDMLDevices on one ID3D12Device are two objects; the first works without the second."""
    with _opened(tested) as device:
        second = create_dml(tested.libraries, device.d3d, dml.FEATURE_LEVELS[0])
        if second.address == device.dml.address:
            second.release()
            raise CheckFailedError("DMLCreateDevice1 returned the same IDMLDevice twice")
        second.release()
        _compute(device, tested)
    return "the first still computes after the second is released"


def _other_device(tested: DeviceUnderTest) -> str:
    """Of two devices on one adapter, the second works after the first is closed."""
    first, second = tested.device(), tested.device()
    try:
        _compute(first, tested)
        _compute(second, tested)
        first.close()
        _compute(second, tested)
    finally:
        first.close()
        second.close()
    return "the second computes before and after the first is closed"


def _many_times(tested: DeviceUnderTest) -> str:
    """A hundred IDMLDevices, created and released, leave no references to the ID3D12Device."""
    with _opened(tested) as device:
        create_dml(tested.libraries, device.d3d, dml.FEATURE_LEVELS[0]).release()
        before = _references(device.d3d)
        for _ in range(TIMES):
            create_dml(tested.libraries, device.d3d, dml.FEATURE_LEVELS[0]).release()
        left = _references(device.d3d) - before
        if left:
            raise CheckFailedError(
                f"{TIMES} released IDMLDevices leave {left:,} references to the ID3D12Device"
            )
        _compute(device, tested)
    return f"no references are left after {TIMES} devices, and the first one still computes"


def _after_removal(tested: DeviceUnderTest) -> str:
    """A removed device reports its removal and computes no more; the next device works."""
    device = tested.device()
    try:
        case = _identity(device, tested)
        _compute_case(device, case)
        if not _remove(device):
            raise DeclinedError("neither RemoveDevice nor an open command list removes the device")
        with suppress(HResultError):
            _compute_case(device, case)
            raise CheckFailedError("a removed device still computes")
    finally:
        device.close()
    with _opened(tested) as following:
        _compute(following, tested)
    return "another device in the same process computes, so the process can continue"


Check = Callable[[DeviceUnderTest], str]

CHECKS: Final[Mapping[str, Check]] = {
    "minimum feature levels": _minimum_levels,
    "feature queries": _feature_queries,
    "data types": _data_types,
    "two devices on one ID3D12Device": _two_devices,
    "another ID3D12Device": _other_device,
    "made and released 100 times": _many_times,
    "after a removal": _after_removal,
}


@contextmanager
def _opened(tested: DeviceUnderTest) -> Iterator[Device]:
    device = tested.device()
    try:
        yield device
    finally:
        device.close()


def _refuses_other_sizes(device: Device) -> None:
    answer = dml.DML_FEATURE_DATA_FEATURE_LEVELS()
    query = dml.DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT(data_type_value(DataType.FLOAT32))
    try:
        device.ask(dml.DML_FEATURE.FEATURE_LEVELS, query, answer)
    except HResultError:
        return
    raise CheckFailedError("CheckFeatureSupport accepts a query of the wrong size")


def _types(device: Device) -> dict[DataType, bool]:
    answers = {}
    for kind in DataType:
        query = dml.DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT(data_type_value(kind))
        answer = dml.DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT(0xFFFF_FFFF)
        try:
            device.ask(dml.DML_FEATURE.TENSOR_DATA_TYPE_SUPPORT, query, answer)
        except HResultError:
            continue  # An older DirectML does not know the 4-bit types.
        if answer.IsSupported not in (0, 1):
            raise CheckFailedError(f"for {kind} it returns {answer.IsSupported}, not 0 or 1")
        answers[kind] = bool(answer.IsSupported)
    return answers


def _references(com: ComObject) -> int:
    com.call("AddRef")
    return int(com.call("Release"))


def _identity(device: Device, tested: DeviceUnderTest) -> Case:
    supported = _types(device)
    for case in tested.identities:
        if all(supported.get(kind) for kind in case.data_types):
            return case
    raise DeclinedError("it supports no data type for computing an identity")


def _compute(device: Device, tested: DeviceUnderTest) -> None:
    """Compute an identity, and check that its output is bitwise equal to its input."""
    _compute_case(device, _identity(device, tested))


def _compute_case(device: Device, case: Case) -> None:
    with ExitStack() as owner:
        executor = Executor(device, dml.DML_EXECUTION_FLAGS.NONE)
        owner.callback(executor.close)
        batch = Batch()
        batch.add(executor.prepare(case))
        [result] = executor.run(batch)
    [expected], [actual] = case.inputs().values(), result.arrays.values()
    if result.faults:
        raise CheckFailedError(f"an identity failed: {result.faults[0].message}")
    if not np.array_equal(expected.view(np.uint8), actual.view(np.uint8)):
        raise CheckFailedError("an identity returned different bits than its input")


def _remove(device: Device) -> bool:
    """Remove the device, and return whether that succeeded."""
    with suppress(HResultError), device.d3d.create("QueryInterface", d3d12.ID3D12_DEVICE5) as newer:
        newer.call("RemoveDevice")
    if not _is_removed(device):
        # Some implementations of Direct3D 12 lack RemoveDevice; submitting an open command list
        # removes a device too.
        device.submit_open_list()
    return _is_removed(device)


def _is_removed(device: Device) -> bool:
    try:
        device.d3d.call("GetDeviceRemovedReason")
    except HResultError:
        return True
    return False


def _level(value: int) -> str:
    return f"{value >> 12}_{value >> 8 & 0xF}"
