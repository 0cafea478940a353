"""Modes of the faulty backend: how it pretends to compile operators, and when its fault occurs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dmlconf.backends.options import choose

__all__ = ["DEFAULT_MODES", "MODE_WORDS", "SWITCHES", "VARIANTS", "Modes"]

_ON_OFF: Final = ("on", "off")
_COMPILE: Final = ("operator", "graph")

_VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "metacommands": _ON_OFF,
    "half": _ON_OFF,
    "compile": _COMPILE,
    "only": ("metacommands", "half", "operator", "graph", "batch"),
}

VARIANTS: Final = {"metacommands": ("on", "off"), "half": ("off", "on"), "compile": _COMPILE}
"""The options that may be `both`, with DirectML's default first."""

SWITCHES: Final = tuple(_VALUES)
"""The options that set modes."""

MODE_WORDS: Final = tuple(f"{name}={value}" for name, values in _VALUES.items() for value in values)
"""The options with their values except `both`, for completion."""


@dataclass(frozen=True, slots=True)
class Modes:
    """How operators are compiled, as in the backend `directml`, and in which mode the fault occurs.

    Attributes:
        metacommands: whether the driver's own implementations of operators may be used.
        half: whether intermediate results may be FLOAT16.
        graph: whether each operator is compiled as a graph of one node.
        only: the mode in which the fault occurs; empty if it always occurs. `batch` means that
            several cases run at once.
    """

    metacommands: bool = True
    half: bool = False
    graph: bool = False
    only: str = ""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Modes:
        """Read the options of a backend; absent options have DirectML's defaults.

        Raises:
            UnknownChoiceError: a value is unknown.
        """
        chosen = {
            name: choose(f"value of the option {name}", options[name], values)
            for name, values in _VALUES.items()
            if name in options
        }
        return cls(
            chosen.get("metacommands") != "off",
            chosen.get("half") == "on",
            chosen.get("compile") == "graph",
            chosen.get("only", ""),
        )

    def fault_present(self, cases: int) -> bool:
        """Return whether the fault occurs when this many cases run at once."""
        present = {
            "metacommands": self.metacommands,
            "half": self.half,
            "operator": not self.graph,
            "graph": self.graph,
            "batch": cases > 1,
        }
        return present.get(self.only, True)

    def details(self) -> dict[str, Any]:
        """Return the options of compiling that differ from the defaults, for the environment."""
        details: dict[str, Any] = {}
        if not self.metacommands:
            details["metacommands"] = False
        if self.half:
            details["half"] = True
        if self.graph:
            details["compile"] = "graph"
        return details


DEFAULT_MODES: Final = Modes()
