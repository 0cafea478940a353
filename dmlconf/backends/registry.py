"""Find and create backends by name; survey and check DirectML's devices."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final

from dmlconf.backends.errors import described
from dmlconf.backends.options import BOTH, choose
from dmlconf.backends.plugins import installed_plugins, require_one, some_installed
from dmlconf.backends.protocol import Backend, BackendError
from dmlconf.backends.subject import REFERENCE

if TYPE_CHECKING:
    from dmlconf.backends.check_results import DeviceChecks, OnResult
    from dmlconf.backends.survey import Survey
    from dmlconf.cases.model import Case

__all__ = [
    "BackendName",
    "backend_names",
    "check_devices",
    "create",
    "is_built_in",
    "is_reference",
    "option_words",
    "parse",
    "survey_adapters",
    "variants",
]


@dataclass(frozen=True, slots=True)
class _BuiltIn:
    module: str
    isolated: bool
    old: bool = False
    """Whether the name is a former one, which works but is not listed."""


_BUILT_IN: Final[Mapping[str, _BuiltIn]] = {
    "numpy": _BuiltIn("dmlconf.backends.numpy.backend", isolated=False),
    "directml": _BuiltIn("dmlconf.backends.directml.backend", isolated=True),
    "onnxruntime": _BuiltIn("dmlconf.backends.onnxruntime.backend", isolated=True),
    "webnn": _BuiltIn("dmlconf.backends.webnn.backend", isolated=True),
    "faulty": _BuiltIn("dmlconf.backends.faulty.backend", isolated=True),
    "miniature": _BuiltIn("dmlconf.backends.faulty.backend", isolated=True, old=True),
    "recording": _BuiltIn("dmlconf.backends.recording.backend", isolated=False),
}


@dataclass(frozen=True, slots=True)
class BackendName:
    """A backend as named on the command line: NAME or NAME:OPTIONS."""

    name: str
    options: str

    def __str__(self) -> str:
        return f"{self.name}:{self.options}" if self.options else self.name

    @property
    def isolated(self) -> bool:
        """Whether the backend must run in worker processes, because it may break down."""
        built_in = _BUILT_IN.get(self.name)
        return built_in is None or built_in.isolated


def backend_names() -> list[str]:
    """Return the names of all backends, without former ones."""
    built_in = (name for name, each in _BUILT_IN.items() if not each.old)
    return [*built_in, *(name for name in installed_plugins() if name not in _BUILT_IN)]


def is_built_in(name: str) -> bool:
    """Return whether a backend is part of dmlconf rather than a plugin."""
    return name in _BUILT_IN


def is_reference(backend: Backend) -> bool:
    """Return whether a backend is the reference itself; `faulty`, which uses it, is not."""
    return type(backend).__module__ == _BUILT_IN[REFERENCE].module


def option_words(name: str) -> tuple[str, ...]:
    """Return the words that may follow a backend's colon, for completion; none for plugins.

    A word that ends in `=` needs a value.
    """
    built_in = _BUILT_IN.get(name)
    words: tuple[str, ...] = ()
    if built_in is not None:
        words = getattr(import_module(built_in.module), "OPTION_WORDS", ())
    return words


def parse(text: str) -> BackendName:
    """Return the backend that a text names; `create` checks its options.

    Raises:
        BackendError: no backend has this name, or several have it.
    """
    name, _, options = text.partition(":")
    if name not in _BUILT_IN:
        choose("backend", name, backend_names())
        require_one(name, installed_plugins()[name])
    elif some_installed():
        require_one(name, installed_plugins().get(name, ()), built_in=True)
    return BackendName(name, options)


def create(backend: BackendName) -> Backend:
    """Create a backend.

    Raises:
        BackendError: it cannot be used.
    """
    built_in = _BUILT_IN.get(backend.name)
    if built_in is not None:
        create_built_in: Callable[..., Backend] = import_module(built_in.module).create
        if built_in.old:
            return create_built_in(backend.options, backend.name)
        return create_built_in(backend.options)
    try:
        plugins = installed_plugins()[backend.name]
        require_one(backend.name, plugins)
        create_plugin: Callable[[str], Backend] = plugins[0].load()
        return create_plugin(backend.options)
    except BackendError:
        raise
    except Exception as error:
        raise BackendError(
            f"the plugin backend {backend.name} cannot be used: {described(error)}"
        ) from error


def variants(backend: BackendName) -> Mapping[str, BackendName]:
    """Return the variants that a backend's options ask for, by label; empty if no option is `both`.

    `directml:metacommands=both` has the variants `metacommands=on` and `metacommands=off`.
    Plugins have none, since this process does not load them.
    """
    built_in = _BUILT_IN.get(backend.name)
    if built_in is None or f"={BOTH}" not in backend.options:
        return {}
    module = import_module(built_in.module)
    split: Callable[[str], Mapping[str, str]] = getattr(module, "variants", lambda text: {})
    options = split(backend.options)
    return {label: BackendName(backend.name, text) for label, text in options.items()}


def survey_adapters(path: str | None = None) -> Survey:
    """Return what DirectML can do on each adapter of this machine.

    Args:
        path: the file of DirectML, or None to search for it.

    Raises:
        BackendError: DirectML cannot be used, or there is no adapter.
    """
    survey: Survey = import_module("dmlconf.backends.directml.devices.survey").survey(path)
    return survey


def check_devices(
    path: str | None,
    identities: Sequence[Case],
    on_result: OnResult,
) -> DeviceChecks:
    """Check the devices of every adapter of this machine.

    Args:
        path: the file of DirectML, or None to search for it.
        identities: cases of ELEMENT_WISE_IDENTITY at feature level 1_0; a check runs at most one.
        on_result: is called with each result.

    Raises:
        BackendError: DirectML cannot be used, or there is no adapter.
    """
    module = import_module("dmlconf.backends.directml.check_processes")
    checks: DeviceChecks = module.check_devices(path, identities, on_result)
    return checks
