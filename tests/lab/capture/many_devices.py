"""`many_devices.py FOLDER COUNT` runs the cases of FOLDER on COUNT devices, one after the other.

After every tenth device it prints the handles and the memory of the process as JSON.
"""

import ctypes
import gc
import json
import os
import sys
from pathlib import Path

from dmlconf.backends.directml.backend import create
from dmlconf.backends.process_memory import committed_bytes
from dmlconf.backends.protocol import Outputs
from dmlconf.capture.hooking.systems.windows_memory import windows_library
from dmlconf.cases.loading.loader import load_suite, valid_case


class Handle(ctypes.Structure):
    _fields_ = [
        ("Object", ctypes.c_void_p),
        ("UniqueProcessId", ctypes.c_size_t),
        ("HandleValue", ctypes.c_size_t),
        ("GrantedAccess", ctypes.c_uint32),
        ("CreatorBackTraceIndex", ctypes.c_uint16),
        ("ObjectTypeIndex", ctypes.c_uint16),
        ("HandleAttributes", ctypes.c_uint32),
        ("Reserved", ctypes.c_uint32),
    ]


EXTENDED_HANDLE_INFORMATION = 64


def handles() -> int:
    """Count the handles of this process; in Wine, GetProcessHandleCount is always 0."""
    size = 1 << 22
    buffer = ctypes.create_string_buffer(size)
    query = windows_library("ntdll").NtQuerySystemInformation
    if query(EXTENDED_HANDLE_INFORMATION, buffer, size, None):
        raise OSError("NtQuerySystemInformation")
    count = ctypes.c_size_t.from_buffer(buffer).value
    entries = (Handle * count).from_buffer(buffer, 2 * ctypes.sizeof(ctypes.c_size_t))
    return sum(each.UniqueProcessId == os.getpid() for each in entries)


def main(folder: str, count: int) -> None:
    cases = [valid_case(planned) for planned in load_suite([Path(folder)]).plan()]
    for number in range(1, count + 1):
        backend = create("")
        outcomes = list(backend.run(cases))
        assert all(isinstance(each, Outputs) for each in outcomes), outcomes
        backend.close()
        if number % 10 == 0:
            gc.collect()
            committed = committed_bytes() >> 10
            line = {"devices": number, "handles": handles(), "committed_kib": committed}
            print(json.dumps(line), flush=True)


main(sys.argv[1], int(sys.argv[2]))
