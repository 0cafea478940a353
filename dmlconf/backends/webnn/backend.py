"""The backend `webnn[:OPTIONS]`: runs cases as WebNN graphs in Chromium without a window.

    webnn:path=/opt/chromium/chromium     the program; a path cannot contain a comma
    webnn:device=gpu                      `cpu` (the default), `gpu` or `npu`

A page of the browser runs a batch of cases. If the page ends, hangs or loses its context of WebNN,
the browser is started again, and the cases of a batch of several run one by one.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from dmlconf.backends.errors import OptionError
from dmlconf.backends.numpy.backend import HIGHEST_LEVEL
from dmlconf.backends.options import choose, split_options
from dmlconf.backends.protocol import (
    BackendError,
    Breakdown,
    BreakdownKind,
    Capabilities,
    Declined,
    Environment,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.backends.webnn.devtools import (
    LONGEST_SCRIPT,
    Browser,
    BrowserEndedError,
    PageError,
)
from dmlconf.cases.model import Case
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.translation.program import BOOL, NotExpressibleError, Program
from dmlconf.translation.translate import translated

__all__ = ["OPTION_WORDS", "WebNNBackend", "create", "started_browser"]

OPTION_WORDS: Final = ("path=", "device=")

VARIABLE: Final = "DMLCONF_CHROMIUM"
"""The environment variable that names the program if the option `path` does not."""

_PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome", "chrome", "msedge")
_DEVICES: Final = ("cpu", "gpu", "npu")
_FEATURE: Final = "--enable-features=WebMachineLearningNeuralNetwork"
_PAGE: Final = Path(__file__).with_name("page.js")

_TYPES: Final[Mapping[str, str]] = {
    BOOL: "uint8",
    **{
        each: each.lower()
        for each in DataType
        if each.bits >= 8 and each not in (DataType.FLOAT64, DataType.INT16, DataType.UINT16)
    },
}
"""WebNN's name of each data type that it has, and of Booleans."""

_DTYPES: Final = {name: np.dtype(name) for name in _TYPES.values()}

_EXACT: Final = 2**53
"""Integers of a larger size are sent as text, from which the page makes a BigInt: JavaScript's
numbers are FLOAT64.
"""

_PART: Final = LONGEST_SCRIPT // 4
"""How many characters of a tensor are sent at once; base64 needs a multiple of 4."""

_RUNNING: Final = ("build", "dispatch")
"""The stages after a graph has been described. In an earlier stage, a message that `_UNSUPPORTED`
matches declines the case.
"""

_UNSUPPORTED: Final = re.compile(
    r"data ?type|rank|not supported|unsupported|non-finite", re.IGNORECASE
)


class WebNNBackend:
    """A context of WebNN on one device."""

    def __init__(self, program: Path, device: str) -> None:
        """Start the browser.

        Raises:
            BackendError: it cannot be started, or has no WebNN.
        """
        self._program, self._device = program, device
        self._timeout: float | None = None
        self._browser = self._started()

    def _started(self) -> Browser:
        try:
            browser = started_browser(self._program)
        except (OSError, BrowserEndedError) as error:
            raise BackendError(f"{self._program} does not start: {error}") from error
        try:
            browser.evaluate(_PAGE.read_text("utf-8").replace('"use strict";', "", 1))
            self._limits = json.loads(browser.evaluate(f"open({{deviceType: '{self._device}'}})"))
        except (PageError, BrowserEndedError) as error:
            browser.close()
            raise BackendError(
                f"{self._program} has no WebNN on {self._device}: {str(error).splitlines()[0]}",
                "lab/chromium.py fetches one that has it on Linux; name it with path=FILE or "
                f"the variable {VARIABLE}",
            ) from error
        return browser

    def environment(self) -> Environment:
        """Return the browser's version and the device."""
        details = {
            "program": str(self._program),
            "device": self._device,
            "target": "webnn",
            "operations": len(self._limits),
        }
        return Environment(
            "webnn", self._browser.version, adapter=f"WebNN on {self._device}", details=details
        )

    def capabilities(self) -> Capabilities:
        """Return the highest feature level and every data type; WebNN may not express all cases."""
        return Capabilities(HIGHEST_LEVEL, frozenset(DataType), compiles_graphs=True)

    def limit_waits(self, seconds: float) -> None:
        """Set how long a batch may take.

        A batch has only the time of a single case, since its outcomes come together, and a worker
        that sends no outcome in that time is ended.
        """
        self._timeout = seconds

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield one outcome for each case; those that WebNN can express run together.

        Raises:
            BackendError: the browser has ended or hung, and cannot be started again.
        """
        made = [_program_of(case) for case in cases]
        programs = [each for each in made if isinstance(each, dict)]
        results = self._together(programs)
        for each in made:
            yield next(results) if isinstance(each, dict) else each

    def close(self) -> None:
        """End the browser."""
        self._browser.close()

    def _together(self, programs: Sequence[Mapping[str, Any]]) -> Iterator[Outcome]:
        """Yield the outcomes of a batch; if it does not complete, run its cases one by one."""
        if not programs:
            return
        results = self._evaluated(programs)
        incomplete = len(results) < len(programs) or any(each.get("lost") for each in results)
        if incomplete and len(programs) > 1:
            for program in programs:
                yield from self._together([program])
        else:
            yield from map(_outcome, results)

    def _evaluated(self, programs: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the page's results.

        If the browser ended or hung, return that for a single program, nothing for several.
        """
        if self._browser.closed:  # It could not be started again.
            self._browser = self._started()
        try:
            results = self._browser.evaluate(self._script(programs), self._timeout)
        except (BrowserEndedError, TimeoutError) as error:
            self._restart()
            what = "hung" if isinstance(error, TimeoutError) else "ended"
            return [{what: str(error)}] if len(programs) == 1 else []
        # The page also ends a batch if its context is lost after a case with outputs.
        if len(results) < len(programs) or any(each.get("lost") for each in results):
            self._restart()
        return list(results)

    def _script(self, programs: Sequence[Mapping[str, Any]]) -> str:
        """Return the script that runs programs; if it is too long, send the tensors before it.

        Tensors are sent in parts, since the browser limits the length of a command and of a string.
        """
        script = f"runAll({json.dumps(programs)})"
        if len(script) < LONGEST_SCRIPT:
            return script
        places = itertools.count()

        def kept(tensor: Mapping[str, Any]) -> Mapping[str, Any]:
            place, data = next(places), tensor["data"]
            for start in range(0, len(data), _PART):
                part = json.dumps(data[start : start + _PART])
                self._browser.evaluate(f"keep({place}, {part})")
            return {**tensor, "data": {"kept": place}}

        short = [
            {
                **program,
                **{
                    field: {name: kept(tensor) for name, tensor in program[field].items()}
                    for field in ("inputs", "constants")
                },
            }
            for program in programs
        ]
        return f"runAll({json.dumps(short)})"

    def _restart(self) -> None:
        self._browser.close()
        self._browser = self._started()


def started_browser(program: Path) -> Browser:
    """Return a new browser with WebNN turned on, if the program has it.

    Raises:
        OSError: no process can be started, as on Windows.
        BrowserEndedError: the program cannot be started, the browser or its page ended, or a
            command was refused.
    """
    libraries = [str(program.parent / "lib"), os.environ.get("LD_LIBRARY_PATH", "")]
    path = os.pathsep.join(filter(None, libraries))
    arguments = [_FEATURE]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        arguments.append("--no-sandbox")
    return Browser(program, arguments, {**os.environ, "LD_LIBRARY_PATH": path})


def create(argument: str) -> WebNNBackend:
    """Create the backend from the options after `webnn:`.

    Raises:
        BackendError: an option is wrong, or no browser with WebNN can be started.
    """
    words, options = split_options(argument)
    unknown = [*words, *(options.keys() - {"path", "device"})]
    if unknown:
        raise OptionError(f"the backend webnn takes path= and device=, but got {unknown[0]!r}")
    device = choose("device", options.get("device", "cpu"), _DEVICES)
    named = options.get("path") or os.environ.get(VARIABLE)
    found = named or next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if found is None:
        raise BackendError(
            f"the backend webnn found none of {', '.join(_PROGRAMS)}",
            f"Name a Chromium or Edge with path=FILE or the variable {VARIABLE}",
        )
    return WebNNBackend(Path(found), device)


def _program_of(case: Case) -> dict[str, Any] | Outcome:
    """Return a case as `runAll` of the page takes it, or its outcome if it cannot be expressed."""
    try:
        program = translated(case, "webnn")
        return _message(program, case.inputs())
    except NotExpressibleError as error:
        return Declined(str(error))
    except MemoryError as error:
        return Breakdown(BreakdownKind.OUT_OF_MEMORY, str(error))


def _message(program: Program, inputs: Mapping[str, Array]) -> dict[str, Any]:
    for each in (*program.inputs.values(), *program.outputs.values()):
        if each.data_type not in _TYPES:
            raise NotExpressibleError(f"WebNN has no tensors of {each.data_type}")
    owned = {name: inputs[name] for name in program.owned}
    used = program.used_inputs()  # A graph has only inputs that an output depends on.
    return {
        "inputs": {n: _tensor(inputs[n]) for n in used if n not in program.owned},
        "constants": {n: _tensor(a) for n, a in {**program.constants, **owned}.items()},
        "outputs": list(program.outputs),
        "steps": [
            {
                "operation": step.operation,
                "inputs": step.inputs,
                "outputs": step.outputs,
                "attributes": {n: _value(value) for n, value in step.attributes.items()},
                "operands": dict(step.operands),
            }
            for step in program.steps
        ],
    }


def _tensor(array: Array) -> dict[str, Any]:
    name = str(array.dtype)
    if name not in _DTYPES:
        raise NotExpressibleError(f"WebNN has no tensors of {name.upper()}")
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"dataType": name, "shape": list(array.shape), "data": data}


def _value(value: Any) -> Any:
    if isinstance(value, str):
        if value in (*DataType, BOOL) and value not in _TYPES:
            raise NotExpressibleError(f"WebNN has no tensors of {value}")
        return _TYPES.get(value, value)
    if isinstance(value, tuple | list):
        return [_value(each) for each in value]
    if isinstance(value, int) and abs(value) > _EXACT:
        return {"integer": str(value)}
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):
        return {"number": {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]}
    return value


def _outcome(result: Mapping[str, Any]) -> Outcome:
    if "outputs" in result:
        arrays = {name: _array(each) for name, each in result["outputs"].items()}
        return Outputs(arrays, float(result["seconds"]))
    if "hung" in result:
        return Breakdown(BreakdownKind.HANG, str(result["hung"]))
    if "ended" in result:
        return Breakdown(BreakdownKind.CRASH, str(result["ended"]))
    if result["lost"]:
        return Breakdown(BreakdownKind.CRASH, f"the context was lost: {result['lost']}")
    message = str(result["message"])
    stage, name = str(result["stage"]), str(result["name"])
    if name == "NotSupportedError" or (stage not in _RUNNING and _UNSUPPORTED.search(message)):
        text = message.partition("MLGraphBuilder': ")[2] or message
        return Declined(f"WebNN's {stage}: {text}"[:200])
    return Rejection(stage, name, message=message[:500])


def _array(tensor: Mapping[str, Any]) -> Array:
    data = base64.b64decode(tensor["data"])
    return np.frombuffer(data, _DTYPES[tensor["dataType"]]).reshape(tensor["shape"])
