"""Declarations of DirectML.h that dmlconf uses, apart from descs of operators and graphs."""

from __future__ import annotations

import ctypes
from enum import IntEnum, IntFlag
from typing import Final

from dmlconf.backends.directml.api.d3d12 import (
    D3D12_CPU_DESCRIPTOR_HANDLE,
    D3D12_GPU_DESCRIPTOR_HANDLE,
)
from dmlconf.backends.directml.api.vtable import IUNKNOWN, NEW_OBJECT, Interface, Method, uncalled
from dmlconf.catalogue import model as catalogue

__all__ = [
    "BINDING_ALIGNMENT",
    "DML_BINDING_DESC",
    "DML_BINDING_PROPERTIES",
    "DML_BINDING_TABLE_DESC",
    "DML_BINDING_TYPE",
    "DML_BUFFER_ARRAY_BINDING",
    "DML_BUFFER_BINDING",
    "DML_CREATE_DEVICE_FLAGS",
    "DML_EXECUTION_FLAGS",
    "DML_FEATURE",
    "DML_FEATURE_DATA_FEATURE_LEVELS",
    "DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT",
    "DML_FEATURE_QUERY_FEATURE_LEVELS",
    "DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT",
    "FEATURE_LEVELS",
    "IDML_BINDING_TABLE",
    "IDML_COMMAND_RECORDER",
    "IDML_COMPILED_OPERATOR",
    "IDML_DEVICE",
    "IDML_DEVICE1",
    "IDML_DEVICE_CHILD",
    "IDML_DISPATCHABLE",
    "IDML_OBJECT",
    "IDML_OPERATOR",
    "IDML_OPERATOR_INITIALIZER",
    "IDML_PAGEABLE",
]

UINT: Final = ctypes.c_uint32
UINT64: Final = ctypes.c_uint64
POINTER: Final = ctypes.c_void_p

BINDING_ALIGNMENT: Final = 256
"""DML_TEMPORARY_BUFFER_ALIGNMENT and DML_PERSISTENT_BUFFER_ALIGNMENT, in bytes."""

FEATURE_LEVELS: Final = tuple(
    level.major << 12 | level.minor << 8 for level in catalogue.FEATURE_LEVELS
)
"""The DML_FEATURE_LEVEL of each of the catalogue's feature levels, the lowest first."""


class DML_FEATURE(IntEnum):
    """Queries of CheckFeatureSupport."""

    TENSOR_DATA_TYPE_SUPPORT = 0
    FEATURE_LEVELS = 1


class DML_EXECUTION_FLAGS(IntFlag):
    """Flags for compiling operators and graphs."""

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4


class DML_CREATE_DEVICE_FLAGS(IntFlag):
    """Flags for creating a device."""

    NONE = 0
    DEBUG = 1


class DML_BINDING_TYPE(IntEnum):
    """Types of bindings."""

    NONE = 0
    BUFFER = 1
    BUFFER_ARRAY = 2


class DML_FEATURE_QUERY_TENSOR_DATA_TYPE_SUPPORT(ctypes.Structure):
    """The data type to query."""

    _fields_ = (("DataType", UINT),)


class DML_FEATURE_DATA_TENSOR_DATA_TYPE_SUPPORT(ctypes.Structure):
    """The answer: whether the data type is supported."""

    _fields_ = (("IsSupported", UINT),)


class DML_FEATURE_QUERY_FEATURE_LEVELS(ctypes.Structure):
    """The feature levels to query."""

    _fields_ = (("RequestedFeatureLevelCount", UINT), ("RequestedFeatureLevels", POINTER))


class DML_FEATURE_DATA_FEATURE_LEVELS(ctypes.Structure):
    """The answer: the highest supported feature level among those queried."""

    _fields_ = (("MaxSupportedFeatureLevel", UINT),)


class DML_BINDING_TABLE_DESC(ctypes.Structure):
    """The dispatchable of a binding table, and its range of descriptors."""

    _fields_ = (
        ("Dispatchable", POINTER),
        ("CPUDescriptorHandle", D3D12_CPU_DESCRIPTOR_HANDLE),
        ("GPUDescriptorHandle", D3D12_GPU_DESCRIPTOR_HANDLE),
        ("SizeInDescriptors", UINT),
    )


class DML_BINDING_PROPERTIES(ctypes.Structure):
    """The requirements of a dispatchable."""

    _fields_ = (
        ("RequiredDescriptorCount", UINT),
        ("TemporaryResourceSize", UINT64),
        ("PersistentResourceSize", UINT64),
    )


class DML_BINDING_DESC(ctypes.Structure):
    """One binding of any type."""

    _fields_ = (("Type", UINT), ("Desc", POINTER))


class DML_BUFFER_BINDING(ctypes.Structure):
    """A range of a buffer."""

    _fields_ = (("Buffer", POINTER), ("Offset", UINT64), ("SizeInBytes", UINT64))


class DML_BUFFER_ARRAY_BINDING(ctypes.Structure):
    """Ranges of buffers, one for each input of an operator or graph that is initialised."""

    _fields_ = (("BindingCount", UINT), ("Bindings", POINTER))


IDML_OBJECT: Final = Interface(
    "IDMLObject",
    "c8263aac-9e0c-4a2d-9b8e-007521a3317c",
    IUNKNOWN,
    uncalled("GetPrivateData SetPrivateData SetPrivateDataInterface SetName"),
)

IDML_DEVICE: Final = Interface(
    "IDMLDevice",
    "6dbd6437-96fd-423f-a98c-ae5e7c2a573f",
    IDML_OBJECT,
    (
        Method("CheckFeatureSupport", (UINT, UINT, POINTER, UINT, POINTER)),
        Method("CreateOperator", (POINTER, *NEW_OBJECT)),
        Method("CompileOperator", (POINTER, UINT, *NEW_OBJECT)),
        Method("CreateOperatorInitializer", (UINT, POINTER, *NEW_OBJECT)),
        Method("CreateCommandRecorder", NEW_OBJECT),
        Method("CreateBindingTable", (POINTER, *NEW_OBJECT)),
        Method("Evict", (UINT, POINTER)),
        Method("MakeResident", (UINT, POINTER)),
        Method("GetDeviceRemovedReason", ()),
        Method("GetParentDevice", NEW_OBJECT),
    ),
)

IDML_DEVICE1: Final = Interface(
    "IDMLDevice1",
    "a0884f9a-d2be-4355-aa5d-5901281ad1d2",
    IDML_DEVICE,
    (Method("CompileGraph", (POINTER, UINT, *NEW_OBJECT)),),
)

IDML_DEVICE_CHILD: Final = Interface(
    "IDMLDeviceChild",
    "27e83142-8165-49e3-974e-2fd66e4cb69d",
    IDML_OBJECT,
    (Method("GetDevice", NEW_OBJECT),),
)

IDML_PAGEABLE: Final = Interface(
    "IDMLPageable", "b1ab0825-4542-4a4b-8617-6dde6e8f6201", IDML_DEVICE_CHILD
)

IDML_OPERATOR: Final = Interface(
    "IDMLOperator", "26caae7a-3081-4633-9581-226fbe57695d", IDML_DEVICE_CHILD
)

IDML_DISPATCHABLE: Final = Interface(
    "IDMLDispatchable",
    "dcb821a8-1039-441e-9f1c-b1759c2f3cec",
    IDML_PAGEABLE,
    (Method("GetBindingProperties", (), DML_BINDING_PROPERTIES),),
)

IDML_COMPILED_OPERATOR: Final = Interface(
    "IDMLCompiledOperator", "6b15e56a-bf5c-4902-92d8-da3a650afea4", IDML_DISPATCHABLE
)

IDML_OPERATOR_INITIALIZER: Final = Interface(
    "IDMLOperatorInitializer",
    "427c1113-435c-469c-8676-4d5dd072f813",
    IDML_DISPATCHABLE,
    (Method("Reset", (UINT, POINTER)),),
)

IDML_BINDING_TABLE: Final = Interface(
    "IDMLBindingTable",
    "29c687dc-de74-4e3b-ab00-1168f2fc3cfc",
    IDML_DEVICE_CHILD,
    (
        Method("BindInputs", (UINT, POINTER), None),
        Method("BindOutputs", (UINT, POINTER), None),
        Method("BindTemporaryResource", (POINTER,), None),
        Method("BindPersistentResource", (POINTER,), None),
        Method("Reset", (POINTER,)),
    ),
)

IDML_COMMAND_RECORDER: Final = Interface(
    "IDMLCommandRecorder",
    "e6857a76-2e3e-4fdd-bff4-5d2ba10fb453",
    IDML_DEVICE_CHILD,
    (Method("RecordDispatch", (POINTER, POINTER, POINTER), None),),
)
