"""The backend `directml` reads options, and reports a failure as `Rejection` or `Breakdown`.

The tested code is in `dmlconf/backends/directml/backend.py`, `dmlconf/backends/options.py`,
`dmlconf/backends/registry.py`, `dmlconf/backends/directml/dispatch/outcomes.py` and
`dmlconf/backends/directml/devices/device.py`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dmlconf.backends import registry
from dmlconf.backends.directml.api import library
from dmlconf.backends.directml.api.dml import DML_EXECUTION_FLAGS
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.backend import Options, create, parse_options
from dmlconf.backends.directml.dispatch.graph import NodeRefusalError
from dmlconf.backends.directml.dispatch.outcomes import failure
from dmlconf.backends.protocol import BackendError, Breakdown, BreakdownKind, Rejection

E_INVALIDARG = 0x80070057
E_OUTOFMEMORY = 0x8007000E
DXGI_ERROR_DEVICE_REMOVED = 0x887A0005
DXGI_ERROR_DEVICE_HUNG = 0x887A0006

SECONDS = 0.5
"""The duration of the failed call."""


def test_the_backend_directml_runs_in_worker_processes() -> None:
    assert "directml" in registry.backend_names()
    assert registry.parse("directml:adapter=1").isolated


def test_options_are_read_from_text_and_have_defaults() -> None:
    text = r"path=Z:\dml\DirectML.dll,adapter=Intel Arc,metacommands=off,half=on,debug=on"
    assert parse_options(f"{text},compile=graph") == Options(
        path=r"Z:\dml\DirectML.dll",
        adapter="Intel Arc",
        metacommands=False,
        half=True,
        debug=True,
        graph=True,
    )
    assert parse_options("") == parse_options("metacommands=on,half=off,debug=off") == Options()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("warp", "'warp' is not of the form OPTION=VALUE"),
        (
            "adaptor=1",
            "there is no option of the backend directml 'adaptor': did you mean adapter?",
        ),
        ("compile=grpah", "there is no value of the option compile 'grpah': did you mean graph?"),
        ("half=yes", "there is no value of the option half 'yes': use one of on, off, both"),
    ],
)
def test_wrong_options_are_refused(text: str, message: str) -> None:
    with pytest.raises(BackendError) as caught:
        parse_options(text)
    assert message in str(caught.value)


def test_options_become_execution_flags() -> None:
    assert Options().flags is DML_EXECUTION_FLAGS.NONE
    assert Options(metacommands=False).flags is DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS
    assert Options(metacommands=False, half=True).flags == (
        DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS
        | DML_EXECUTION_FLAGS.ALLOW_HALF_PRECISION_COMPUTATION
    )


@pytest.mark.parametrize(
    ("call", "hresult", "name"),
    [
        ("CreateOperator", E_INVALIDARG, "E_INVALIDARG"),
        ("CompileOperator", 0x80004005, "E_FAIL"),
        ("CompileGraph", E_INVALIDARG, "E_INVALIDARG"),
        ("CreateOperatorInitializer", E_INVALIDARG, "E_INVALIDARG"),
        ("CompileOperator", 0x80041234, "0x80041234"),
    ],
)
def test_refusal_of_an_operator_is_a_rejection(call: str, hresult: int, name: str) -> None:
    assert failure(HResultError(call, hresult), SECONDS) == Rejection(call, name, (), SECONDS)


def test_refusal_of_a_graph_node_names_the_node() -> None:
    error = NodeRefusalError("second", HResultError("CreateOperator", E_INVALIDARG))
    expected = Rejection("CreateOperator", "E_INVALIDARG", (), SECONDS, "second")
    assert failure(error, SECONDS) == expected


@pytest.mark.parametrize(
    ("call", "hresult", "kind"),
    [
        # Whatever its HRESULT, this call fails only if the device was removed.
        ("GetDeviceRemovedReason", E_INVALIDARG, BreakdownKind.DEVICE_REMOVED),
        ("CreateOperator", DXGI_ERROR_DEVICE_REMOVED, BreakdownKind.DEVICE_REMOVED),
        ("Signal", DXGI_ERROR_DEVICE_HUNG, BreakdownKind.DEVICE_REMOVED),
        ("CompileOperator", E_OUTOFMEMORY, BreakdownKind.OUT_OF_MEMORY),
        ("CreateCommittedResource", E_OUTOFMEMORY, BreakdownKind.OUT_OF_MEMORY),
        ("Close", E_INVALIDARG, BreakdownKind.ERROR),
    ],
)
def test_other_failures_are_breakdowns_that_name_the_call(
    call: str, hresult: int, kind: BreakdownKind
) -> None:
    outcome = failure(HResultError(call, hresult), SECONDS)
    assert isinstance(outcome, Breakdown)
    assert outcome.kind is kind
    assert call in outcome.message


def test_an_adapter_that_cannot_be_opened_is_an_error(
    wsl_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if sys.platform == "win32":
        pytest.skip("the stand-in for Direct3D 12 exists only on Linux")
    monkeypatch.setenv(library.LIBRARY_FOLDER_VARIABLE, str(wsl_folder))
    with pytest.raises(BackendError, match="D3D12CreateDevice: DXGI_ERROR_UNSUPPORTED"):
        create(f"path={wsl_folder / 'libdirectml.so'}")
