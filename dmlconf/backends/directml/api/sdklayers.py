"""Declarations of d3d12sdklayers.h, for debug layers, as far as dmlconf uses them."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Final

from dmlconf.backends.directml.api.vtable import IUNKNOWN, Interface, Method, uncalled

__all__ = ["D3D12_MESSAGE", "D3D12_MESSAGE_SEVERITY", "ID3D12_DEBUG", "ID3D12_INFO_QUEUE"]

UINT: Final = ctypes.c_uint32
UINT64: Final = ctypes.c_uint64
SIZE_T: Final = ctypes.c_size_t
POINTER: Final = ctypes.c_void_p


class D3D12_MESSAGE_SEVERITY(IntEnum):
    """Severities of debug layer messages."""

    CORRUPTION = 0
    ERROR = 1
    WARNING = 2
    INFO = 3
    MESSAGE = 4


class D3D12_MESSAGE(ctypes.Structure):
    """A message of the debug layer; its description follows in memory."""

    _fields_ = (
        ("Category", UINT),
        ("Severity", UINT),
        ("ID", UINT),
        ("pDescription", POINTER),
        ("DescriptionByteLength", SIZE_T),
    )


ID3D12_DEBUG: Final = Interface(
    "ID3D12Debug",
    "344488b7-6846-474b-b989-f027448245e0",
    IUNKNOWN,
    (Method("EnableDebugLayer", (), None),),
)

ID3D12_INFO_QUEUE: Final = Interface(
    "ID3D12InfoQueue",
    "0742a90b-c387-483f-b946-30a7e4e61458",
    IUNKNOWN,
    (
        *uncalled("SetMessageCountLimit"),
        Method("ClearStoredMessages", (), None),
        Method("GetMessage", (UINT64, POINTER, ctypes.POINTER(SIZE_T))),
        *uncalled("GetNumMessagesAllowedByStorageFilter GetNumMessagesDeniedByStorageFilter"),
        Method("GetNumStoredMessages", (), UINT64),
        *uncalled(
            "GetNumStoredMessagesAllowedByRetrievalFilter "
            "GetNumMessagesDiscardedByMessageCountLimit GetMessageCountLimit "
            "AddStorageFilterEntries GetStorageFilter ClearStorageFilter "
            "PushEmptyStorageFilter PushCopyOfStorageFilter PushStorageFilter PopStorageFilter "
            "GetStorageFilterStackSize AddRetrievalFilterEntries GetRetrievalFilter "
            "ClearRetrievalFilter PushEmptyRetrievalFilter PushCopyOfRetrievalFilter "
            "PushRetrievalFilter PopRetrievalFilter GetRetrievalFilterStackSize AddMessage "
            "AddApplicationMessage SetBreakOnCategory SetBreakOnSeverity SetBreakOnID "
            "GetBreakOnCategory GetBreakOnSeverity GetBreakOnID SetMuteDebugOutput "
            "GetMuteDebugOutput"
        ),
    ),
)
