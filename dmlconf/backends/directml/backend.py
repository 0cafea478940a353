"""The backend `directml[:OPTION=VALUE,...]`: real DirectML on one adapter.

    path=FILE            the file of DirectML
    adapter=ADAPTER      an index, a name or a part of it, or `warp`
    metacommands=off     disables the driver's own implementations
    half=on              permits FLOAT16 for intermediate results
    debug=on             uses the debug layers
    compile=graph        compiles each operator as a graph of one node

`metacommands`, `half` and `compile` may be `both`: `dmlconf run` then runs each case in each
variant.

If the device is removed or hangs, all later cases break down: the backend opens no other device.
A crash in DirectML ends the process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

from dmlconf.backends.circumstances import Circumstance, UnderCircumstance
from dmlconf.backends.directml.api.dml import DML_EXECUTION_FLAGS
from dmlconf.backends.directml.api.hresult import HResultError
from dmlconf.backends.directml.api.library import Libraries, load
from dmlconf.backends.directml.circumstances.exerciser import DirectMLExerciser
from dmlconf.backends.directml.devices.adapters import Adapter, Adapters, choose_adapter
from dmlconf.backends.directml.devices.device import Device
from dmlconf.backends.directml.dispatch.executor import Executor
from dmlconf.backends.directml.dispatch.outcomes import Runner
from dmlconf.backends.errors import OptionError
from dmlconf.backends.options import BOTH, choose, split_options, variants_of
from dmlconf.backends.protocol import BackendError, Capabilities, Environment, Outcome
from dmlconf.cases.model import Case

__all__ = ["OPTION_WORDS", "DirectMLBackend", "Options", "create", "parse_options", "variants"]


@dataclass(frozen=True, slots=True)
class Options:
    """The options after `directml:`, which the module's docstring explains.

    Attributes:
        path: the file of DirectML, or None to search for it.
        adapter: the adapter, or None if dmlconf chooses.
        graph: whether each operator is compiled as a graph of one node.
    """

    path: str | None = None
    adapter: str | None = None
    metacommands: bool = True
    half: bool = False
    debug: bool = False
    graph: bool = False

    @property
    def flags(self) -> DML_EXECUTION_FLAGS:
        """The flags with which operators are compiled, apart from flags of a case."""
        flags = DML_EXECUTION_FLAGS.NONE
        if not self.metacommands:
            flags |= DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS
        if self.half:
            flags |= DML_EXECUTION_FLAGS.ALLOW_HALF_PRECISION_COMPUTATION
        return flags


_SWITCHES: Final = ("metacommands", "half", "debug")
_TEXTS: Final = ("path", "adapter")
_COMPILE: Final = "compile"
_WAYS: Final = ("operator", "graph")

_VARIANTS: Final = {"metacommands": ("on", "off"), "half": ("off", "on"), _COMPILE: _WAYS}

OPTION_WORDS: Final = (
    *(f"{name}=" for name in _TEXTS),
    *(f"{name}={value}" for name in _SWITCHES for value in ("on", "off")),
    *(f"{_COMPILE}={value}" for value in _WAYS),
    *(f"{name}={BOTH}" for name in _VARIANTS),
)
"""Words that may follow `directml:`, for completion."""


def parse_options(text: str) -> Options:
    """Parse the options after `directml:`.

    Raises:
        BackendError: an option or its value is unknown, has no value, or is `both`.
    """
    words, settings = split_options(text)
    if words:
        raise OptionError(f"directml: {words[0]!r} is not of the form OPTION=VALUE")
    values: dict[str, Any] = {}
    for name, value in settings.items():
        choose("option of the backend directml", name, (*_TEXTS, *_SWITCHES, _COMPILE))
        if value == BOTH and name in _VARIANTS:
            raise OptionError(
                f"directml: {name}={BOTH} works only with `dmlconf run`, which compares both; "
                f"use {' or '.join(_VARIANTS[name])} here"
            )
        switch = name in _SWITCHES
        known = ("on", "off") if switch else _WAYS
        if switch or name == _COMPILE:
            # `both` was handled above; the message of an error lists it.
            extra = (BOTH,) if name in _VARIANTS else ()
            choose(f"value of the option {name}", value, (*known, *extra))
        if name == _COMPILE:
            values["graph"] = value == "graph"
        else:
            values[name] = value == "on" if switch else value
    return Options(**values)


class DirectMLBackend:
    """DirectML on one adapter."""

    def __init__(self, options: Options) -> None:
        """Load DirectML, and open the adapter.

        Raises:
            BackendError: DirectML or the adapter cannot be used.
            NativeCrashError: DirectML or DXGI crashed.
        """
        self._options = options
        self._libraries: Libraries = load(options.path)
        with Adapters(self._libraries) as adapters, ExitStack() as owned:
            self._adapter: Adapter = choose_adapter(options.adapter, adapters.found)
            native = adapters.native(self._adapter)
            self._device = Device(self._libraries, native, debug=options.debug)
            owned.callback(self._device.close)
            try:
                self._capabilities = replace(
                    self._device.capabilities(), half_precision=self._options.half
                )
                self._executor = Executor(self._device, options.flags, graph=options.graph)
                self._runner = Runner(self._executor, self._device.messages)
                self._exerciser = DirectMLExerciser(
                    self._device, self._executor.operators, options.flags, graph=options.graph
                )
            except HResultError as error:
                raise BackendError(f"{self._adapter.description}: {error}") from error
            owned.pop_all()

    def environment(self) -> Environment:
        """Return the DirectML, the adapter, the driver and the options in use."""
        file = self._libraries.file
        adapter = self._adapter
        return Environment(
            backend="directml",
            version=file.version,
            adapter=adapter.description,
            driver=adapter.driver_version,
            details={
                "directml_file": str(file.path),
                "directml_origin": file.origin,
                "directml_sha256": file.sha256,
                "vendor_id": f"0x{adapter.vendor_id:04x}",
                "device_id": f"0x{adapter.device_id:04x}",
                "luid": adapter.luid,
                "software": adapter.software,
                "feature_level": str(self._capabilities.feature_level),
                "metacommands": self._options.metacommands,
                "half": self._options.half,
                "debug": self._options.debug,
                **self._debug_layers(),
                "compile": _WAYS[self._options.graph],
            },
        )

    def _debug_layers(self) -> dict[str, Any]:
        if not self._options.debug:
            return {}
        missing = list(self._device.missing_layers)
        return {"messages": self._device.messages is not None, "missing_debug_layers": missing}

    def capabilities(self) -> Capabilities:
        """Return what DirectML reports, the adapter's memory, `half` and all circumstances."""
        circumstances = frozenset(map(str, Circumstance))
        memory = self._adapter.memory
        return replace(
            self._capabilities, memory=memory, circumstances=circumstances, compiles_graphs=True
        )

    def run(self, cases: Sequence[Case]) -> Iterator[Outcome]:
        """Yield one outcome for each case, in order."""
        return self._runner.run(cases)

    def exercise(self, case: Case, circumstance: Circumstance) -> UnderCircumstance:
        """Run a case under a circumstance."""
        return self._exerciser.exercise(case, circumstance)

    def limit_waits(self, seconds: float) -> None:
        """Set how long the device may take for one submission, in seconds; the default is 60."""
        self._device.limit.seconds = seconds

    def close(self) -> None:
        """Release the device and its memory; a device that hangs is kept until the process ends."""
        if self._device.limit.exceeded:
            return
        self._exerciser.close()
        self._executor.close()
        self._device.close()


def create(argument: str) -> DirectMLBackend:
    """Create the backend from the options after `directml:`.

    Raises:
        BackendError, NativeCrashError: as in `parse_options` and `DirectMLBackend`.
    """
    return DirectMLBackend(parse_options(argument))


def variants(argument: str) -> dict[str, str]:
    """Return the options of each variant of `NAME=both`, by a key such as `metacommands=off`."""
    return variants_of(argument, _VARIANTS)
