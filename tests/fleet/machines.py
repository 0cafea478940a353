"""A scheduler and workers of Dask, as separate processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final

from tests.cli.process import environment
from tests.fleet.network import Link
from tests.ports import free_port

__all__ = ["Machines"]

_DASK: Final = (sys.executable, "-m", "dask")


class Machines:
    """A scheduler and its workers, which end with the `with` block.

    Attributes:
        nannies: by the worker's name, the process of its nanny, or its own if it has none.
    """

    def __init__(self, folder: Path, cwd: Path | None = None, **variables: str) -> None:
        """Start the scheduler; `variables` are further environment variables of all processes."""
        self._folder, self._cwd, self._variables = folder, cwd or folder, variables
        self.nannies: dict[str, subprocess.Popen[bytes]] = {}
        self._networks: dict[str, tuple[Link, Link]] = {}
        address = folder / "scheduler.json"
        self.scheduler = self._start(
            "scheduler",
            "--host",
            "127.0.0.1",
            "--port",
            "0",
            "--no-dashboard",
            "--scheduler-file",
            str(address),
        )
        self.address = self._address_in(address)

    def __enter__(self) -> Machines:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in (*self.nannies.values(), self.scheduler):
            children = self.workers_of(process)
            process.kill()
            process.wait()
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(child, 9)
        for link in (link for links in self._networks.values() for link in links):
            link.close()

    def worker(self, name: str, cwd: Path | None = None, **variables: str) -> None:
        """Start a worker, and a nanny that restarts it."""
        self.nannies[name] = self._start(
            "worker",
            self.address,
            "--resources",
            "adapter=1",
            "--name",
            name,
            "--nthreads",
            "1",
            "--no-dashboard",
            "--local-directory",
            str(self._folder / f"worker-{name}"),
            output=f"worker-{name}",
            cwd=cwd,
            **variables,
        )

    def worker_behind_network(self, name: str) -> None:
        """Start a worker without a nanny, behind a network that can be cut."""
        port = free_port()
        scheduler = int(self.address.rpartition(":")[2])
        out, back = self._networks[name] = Link(scheduler), Link(port)
        self.nannies[name] = self._start(
            "worker",
            f"tcp://127.0.0.1:{out.port}",
            "--resources",
            "adapter=1",
            "--name",
            name,
            "--nthreads",
            "1",
            "--no-dashboard",
            "--no-nanny",
            "--listen-address",
            f"tcp://127.0.0.1:{port}",
            "--contact-address",
            f"tcp://127.0.0.1:{back.port}",
            "--local-directory",
            str(self._folder / f"worker-{name}"),
            output=f"worker-{name}",
        )

    def cut_off(self, name: str) -> None:
        for link in self._networks[name]:
            link.cut()

    def reconnect(self, name: str) -> None:
        """Undo `cut_off`; what was sent meanwhile arrives."""
        for link in self._networks[name]:
            link.mend()

    def wait(self, seconds: float = 60.0) -> None:
        """Wait until all workers are registered."""
        deadline = time.monotonic() + seconds
        for name in self.nannies:
            output = self._folder / f"worker-{name}.txt"
            while "Registered to:" not in output.read_text("utf-8", "replace"):
                assert time.monotonic() < deadline, output.read_text("utf-8", "replace")
                time.sleep(0.05)

    def worker_process(self, name: str) -> int | None:
        """Return the number of a worker's process; None while the nanny has none."""
        children = self.workers_of(self.nannies[name])
        return children[0] if children else None

    @staticmethod
    def workers_of(nanny: subprocess.Popen[bytes]) -> list[int]:
        result = []
        for children in Path(f"/proc/{nanny.pid}/task").glob("*/children"):
            with suppress(FileNotFoundError, ProcessLookupError):
                for pid in children.read_text("ascii").split():
                    if b"spawn_main" in Path(f"/proc/{pid}/cmdline").read_bytes():
                        result.append(int(pid))
        return result

    def _address_in(self, file: Path, seconds: float = 60.0) -> str:
        deadline = time.monotonic() + seconds
        while True:
            with suppress(FileNotFoundError, ValueError):  # The file is absent or not whole.
                return str(json.loads(file.read_text("utf-8"))["address"])
            assert time.monotonic() < deadline, (self._folder / "scheduler.txt").read_text("utf-8")
            time.sleep(0.05)

    def _start(
        self,
        *arguments: str,
        output: str = "scheduler",
        cwd: Path | None = None,
        **variables: str,
    ) -> subprocess.Popen[bytes]:
        with (self._folder / f"{output}.txt").open("wb") as stream:
            return subprocess.Popen(
                [*_DASK, *arguments],
                cwd=cwd or self._cwd,
                env={**environment(self._folder), **self._variables, **variables},
                stdout=stream,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
