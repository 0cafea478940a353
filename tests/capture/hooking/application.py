"""Use DirectML through a native library: `application.py LIBRARY` prints what it computes as JSON.

Other scripts import it: `Application(LIBRARY)` makes a device.
"""

from __future__ import annotations

import ctypes
import json
import sys
from typing import Any, Final

COUNT: Final = 6
"""The elements of A and of B, as in `native/application.cpp`."""

THREADS: Final = 8

A: Final = (1.0, -2.0, 3.0, -4.0, 5.0, -6.0)
B: Final = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
"""The tensors that the application adds."""


class Application:
    def __init__(self, path: str) -> None:
        """Make a device; `OSError` if that fails."""
        self._library = ctypes.CDLL(path)
        self._library.application_open.restype = ctypes.c_void_p
        self._device = ctypes.c_void_p(self._library.application_open())
        if not self._device:
            raise OSError("no device")

    def add(self) -> list[float]:
        """Return A + B; DirectML owns B."""
        return self._call("add")

    def pair(self) -> list[float]:
        """Return what `add` does, from one of two operators that are initialised together."""
        return self._call("pair")

    def graph(self) -> list[float]:
        """Return max(A + B, 0) from a graph that is recorded, then bound."""
        return self._call("graph")

    def again(self) -> list[float]:
        """Return what `graph` does, from a graph that was first bound to buffers now released."""
        return self._call("again")

    def threads(self) -> list[float]:
        results = (ctypes.c_float * (THREADS * COUNT))()
        self._library.application_threads(self._device, THREADS, *_inputs(), results)
        return list(results)

    def refused(self) -> int:
        """Return the HRESULT for an operator that does not exist."""
        return int(self._library.application_refused(self._device)) & 0xFFFF_FFFF

    def close(self) -> None:
        self._library.application_close(self._device)

    def unload(self) -> None:
        """Release the device, and let the system unload the library and what it uses."""
        self.close()
        import _ctypes

        _ctypes.dlclose(self._library._handle)

    def _call(self, name: str) -> list[float]:
        result = (ctypes.c_float * COUNT)()
        getattr(self._library, f"application_{name}")(self._device, *_inputs(), result)
        return list(result)


def _inputs() -> Any:
    kind = ctypes.c_float * COUNT
    return kind(*A), kind(*B)


def main() -> None:
    application = Application(sys.argv[1])
    results = {
        "add": application.add(),
        "graph": application.graph(),
        "refused": application.refused(),
        "threads": application.threads(),
    }
    application.close()
    print(json.dumps(results))


if __name__ == "__main__":
    main()
