"""The tags of a case, such as `half-precision`, add flags with which DirectML compiles it.

The tested code is in `dmlconf/backends/directml/dispatch/case_flags.py`,
`dmlconf/backends/directml/dispatch/operators.py` and
`dmlconf/backends/directml/dispatch/executor.py`.
"""

from __future__ import annotations

import ctypes
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from dmlconf.backends.directml.api import dml
from dmlconf.backends.directml.api.dml import DML_EXECUTION_FLAGS
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.dispatch import executor
from dmlconf.cases.loading.loader import valid_case
from tests.backends.directml.com import FakeCom
from tests.bundled import bundled

E_FAIL = 0x80004005 - 2**32


class BuffersWithoutDevice:
    """The executor's buffers, in memory of this process in place of a device's."""

    def __init__(self, device: object) -> None:
        self._kept: dict[str, Any] = {}

    def get(self, name: str, size: int, kind: object) -> SimpleNamespace:
        self._kept[name] = ctypes.create_string_buffer(size)
        return SimpleNamespace(memory=ctypes.addressof(self._kept[name]))


@pytest.mark.parametrize(
    ("option", "tags", "expected"),
    [
        (
            DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS,
            ("captured",),
            DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS,
        ),
        (
            DML_EXECUTION_FLAGS.NONE,
            ("no-metacommands",),
            DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS,
        ),
        (
            DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS,
            ("captured", "half-precision", "descriptors-volatile"),
            DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS
            | DML_EXECUTION_FLAGS.ALLOW_HALF_PRECISION_COMPUTATION
            | DML_EXECUTION_FLAGS.DESCRIPTORS_VOLATILE,
        ),
    ],
)
def test_tags_add_flags_to_those_of_options(
    option: DML_EXECUTION_FLAGS,
    tags: tuple[str, ...],
    expected: DML_EXECUTION_FLAGS,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled_with: list[int] = []
    operator = FakeCom(dml.IDML_OPERATOR)

    def create(desc: int, riid: Any, result: Any) -> int:
        result[0] = operator.address
        return 0

    def compile_operator(address: int, flags: int, riid: Any, result: Any) -> int:
        compiled_with.append(flags)
        return E_FAIL

    fake = FakeCom(dml.IDML_DEVICE, CreateOperator=create, CompileOperator=compile_operator)
    device: Any = SimpleNamespace(dml=fake, d3d=None, queue=None)
    monkeypatch.setattr(executor, "Buffers", BuffersWithoutDevice)
    monkeypatch.setattr(executor, "DescriptorHeap", lambda *_: None)
    monkeypatch.setattr(executor, "Timestamps", lambda *_: None)
    tested_executor = executor.Executor(device, option)
    case = valid_case(next(bundled("tile/documented.yaml").plan()))
    with pytest.raises(HResultError):
        tested_executor.prepare(replace(case, tags=tags))
    assert compiled_with == [expected]
