"""Run the cases of a diagnosis in this process, without starting a worker."""

from __future__ import annotations

from dataclasses import replace

from dmlconf.backends import registry
from dmlconf.backends.protocol import Backend
from dmlconf.backends.registry import BackendName
from dmlconf.diagnosis.bench import Bench
from dmlconf.engine.session import OpenBackend, in_process, reference

__all__ = ["InProcessBench"]


class InProcessBench(Bench):
    """Runs cases on a backend `faulty:...` that ends no process; the reference judges them."""

    def __init__(self, backend: str, device: Backend | None = None) -> None:
        """Choose the backend by its name, and perhaps another device that stands for it."""
        name = registry.parse(backend)
        super().__init__(name, timeout=10, against=reference("numpy", name))
        self._here: dict[BackendName, OpenBackend] = {}
        if device is not None:
            self._here[name] = replace(in_process(name, device), is_reference=False)

    def open(self, backend: BackendName | None = None) -> OpenBackend:
        name = backend or self.backend
        if name not in self._here:
            self._here[name] = in_process(name, registry.create(name))
        return self._here[name]
