"""Run each check of `device_checks` on each adapter that can be used, in a process of its own.

If a driver crashes or hangs in one check, the other checks still run.
"""

from __future__ import annotations

import multiprocessing
import sys
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from time import perf_counter
from typing import Final

from dmlconf.backends.check_results import Checked, CheckResult, CheckStatus, DeviceChecks, OnResult
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.library import load
from dmlconf.backends.directml.api.vtable import NativeCrashError
from dmlconf.backends.directml.device_checks import (
    CHECKS,
    CheckFailedError,
    DeclinedError,
    DeviceUnderTest,
)
from dmlconf.backends.directml.devices.adapters import Adapter, Adapters
from dmlconf.backends.directml.devices.survey import survey
from dmlconf.backends.process_end import how_it_ended
from dmlconf.backends.process_start import (
    children_ignore_interrupts,
    existing_working_folder,
    ignore_interrupts,
)
from dmlconf.backends.protocol import BackendError
from dmlconf.cases.model import Case

__all__ = ["check_devices"]

SECONDS: Final = 60.0
"""How long a check may take, including the start of its process."""


def check_devices(
    path: str | None,
    identities: Sequence[Case],
    on_result: OnResult = lambda index, description, result: None,
) -> DeviceChecks:
    """Return the results of every check on every adapter.

    If an adapter cannot be used, no check runs on it; each result then says why.

    Args:
        path: the file of DirectML, or None to search for it.
        identities: cases of ELEMENT_WISE_IDENTITY at feature level 1_0; a check runs at most one.

    Raises:
        BackendError: DirectML cannot be used, or there is no adapter.
    """
    surveyed = survey(path)
    adapters = []
    for entry in surveyed.adapters:
        results = []
        for name in CHECKS:
            if entry.refusal is not None:
                # An adapter need not support Direct3D 12 or DirectML; older NPUs do not.
                declined = "DXGI_ERROR_UNSUPPORTED" in entry.refusal
                status = CheckStatus.UNSUPPORTED if declined else CheckStatus.BROKEN
                result = CheckResult(name, status, entry.refusal)
            else:
                result = _in_process(path, entry.adapter, name, tuple(identities))
            on_result(entry.adapter.index, entry.adapter.description, result)
            results.append(result)
        adapters.append(Checked(entry.adapter, tuple(results)))
    return DeviceChecks(surveyed.file, tuple(adapters))


def _in_process(
    path: str | None, adapter: Adapter, name: str, identities: tuple[Case, ...]
) -> CheckResult:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_work, args=(theirs, path, adapter.index, name, identities), daemon=True
    )
    began = perf_counter()
    with children_ignore_interrupts(), existing_working_folder():
        process.start()
    theirs.close()
    try:
        if ours.poll(SECONDS):
            result: CheckResult = ours.recv()
            return result
        message = f"it did not end within {SECONDS:.0f} seconds"
    except (EOFError, OSError):
        message = f"its process {how_it_ended(process)}"
    finally:
        process.kill()
        process.join()
        ours.close()
    return CheckResult(name, CheckStatus.BROKEN, message, perf_counter() - began)


def _work(
    connection: Connection, path: str | None, index: int, name: str, identities: tuple[Case, ...]
) -> None:
    ignore_interrupts()
    began = perf_counter()
    status = CheckStatus.BROKEN
    try:
        libraries = load(path)
        with Adapters(libraries) as adapters:
            tested = DeviceUnderTest(libraries, adapters.native(adapters.found[index]), identities)
            message = CHECKS[name](tested)
            status = CheckStatus.PASSED
    except CheckFailedError as error:
        status, message = CheckStatus.FAILED, str(error)
    except DeclinedError as error:
        status, message = CheckStatus.UNSUPPORTED, str(error)
    except (BackendError, HResultError, NativeCrashError) as error:
        message = str(error)
    with suppress(BrokenPipeError):
        connection.send(CheckResult(name, status, message, perf_counter() - began))
    sys.stderr.flush()
