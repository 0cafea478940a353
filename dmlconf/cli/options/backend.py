"""Options for backends, worker processes, ending a run early, and colours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

import click

from dmlconf.backends import registry
from dmlconf.backends.options import split_options
from dmlconf.cli.common.command import option, options
from dmlconf.cli.common.completion import complete_backend
from dmlconf.cli.common.configuration import BACKEND_GROUP
from dmlconf.cli.common.parameter_types import TEXT, Number, WholeNumber, WholeNumberOr
from dmlconf.cli.common.path_types import EXISTING_FILE
from dmlconf.workers.execution import WORKER_MEMORY
from dmlconf.workers.processors import usable_processors

__all__ = [
    "backend_option",
    "backend_options",
    "color_option",
    "directml_option",
    "early_end_options",
    "jobs_option",
    "timeout_option",
    "with_directml",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])

_MOST_JOBS: Final = 1024
"""The most worker processes; `strength` starts them all, even without work for each."""


def backend_option(
    explanation: str, *names: str, **attributes: Any
) -> Callable[[_Function], _Function]:
    """Return a decorator that adds an option which names a backend.

    Args:
        explanation: the help of the option.
        names: the option's spellings and its parameter; `-b` and `--backend` if left out.
    """
    return option(
        *(names or ("-b", "--backend")),
        metavar="BACKEND",
        shell_complete=complete_backend,
        help=explanation,
        **attributes,
    )


def jobs_option(otherwise: str) -> Callable[[_Function], _Function]:
    """Return a decorator that adds the option `--jobs`; its default is None.

    Args:
        otherwise: the default in the help, such as `1`.
    """
    return option(
        "-j",
        "--jobs",
        type=WholeNumberOr(WholeNumber(1, _MOST_JOBS), "auto", usable_processors),
        metavar="N|auto",
        group=BACKEND_GROUP,
        help=f"Worker processes to run in parallel; by default {otherwise}. auto: as many as "
        "the processors that this process may use.",
    )


def timeout_option(
    text: str, default: float = 60.0, **attributes: Any
) -> Callable[[_Function], _Function]:
    """Return a decorator that adds the option `--timeout`, with this text as its help."""
    return option(
        "--timeout",
        default=default,
        show_default=True,
        metavar="SECONDS",
        type=Number(min=0, min_open=True),
        help=text,
        **attributes,
    )


backend_options: Final = options(
    timeout_option("How long one case may take in a worker process.", group=BACKEND_GROUP),
    option(
        "--worker-memory",
        default=WORKER_MEMORY >> 20,
        show_default=True,
        metavar="MIB",
        type=WholeNumber(min=1),
        group=BACKEND_GROUP,
        help="Replace a worker process between batches once it has grown by this much.",
    ),
    option(
        "--substrate",
        type=EXISTING_FILE,
        envvar="DMLCONF_SUBSTRATE",
        metavar="FILE",
        group=BACKEND_GROUP,
        help="Report failures caused by the limits in this file separately.",
    ),
)


early_end_options: Final = options(
    option(
        "-x",
        "--fail-fast",
        is_flag=True,
        group=BACKEND_GROUP,
        help="Stop at the first failure.",
    ),
    option(
        "--max-failures",
        type=WholeNumber(min=1),
        metavar="N",
        group=BACKEND_GROUP,
        help="Stop after N failures.",
    ),
)


directml_option: Final = option(
    "--directml",
    type=TEXT,
    metavar="FILE",
    group=BACKEND_GROUP,
    help="Use this DirectML.dll or libdirectml.so for every directml backend without its own "
    "path= option.",
)


def with_directml(
    backends: Sequence[registry.BackendName], path: str | None
) -> list[registry.BackendName]:
    """Return the backends; each `directml` without its own `path=` gets the path of `--directml`.

    Raises:
        click.UsageError: the path has a comma, or no backend can use it.
    """
    if path is None:
        return list(backends)
    hint = "--directml"
    if "," in path:
        reason = "the path cannot contain a comma; set the variable DMLCONF_DIRECTML instead"
        raise click.BadParameter(reason, param_hint=hint)
    if all(backend.name != "directml" for backend in backends):
        reason = "no backend is directml; add --backend directml"
        raise click.BadParameter(reason, param_hint=hint)
    changed = [_with_path(backend, path) for backend in backends]
    if changed == list(backends):
        reason = "each directml backend has its own path=; leave out one or the other"
        raise click.BadParameter(reason, param_hint=hint)
    return changed


def _with_path(backend: registry.BackendName, path: str) -> registry.BackendName:
    if backend.name != "directml" or "path" in split_options(backend.options)[1]:
        return backend
    return replace(backend, options=",".join(filter(None, (backend.options, f"path={path}"))))


color_option: Final = option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="When to use colour; auto honours NO_COLOR.",
)
