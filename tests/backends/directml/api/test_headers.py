"""The declarations of DirectML, Direct3D 12, DXGI and DXCore agree with the headers of each.

The tests need g++ and Microsoft's headers: Debian's package directx-headers-dev, or a folder that
the variable DMLCONF_DIRECTX_HEADERS names. Some read MinGW's headers if its compiler is installed.

The tested code is in the modules of `dmlconf/backends/directml/api/`: `d3d12.py`, `dml.py`,
`dxcore.py`, `dxgi.py`, `sdklayers.py` and `structs.py`, in
`dmlconf/backends/directml/dispatch/graph.py`, and in `schemas/operators/` and
`schemas/common.yaml`.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

from dmlconf.backends.directml.api import d3d12, dml, dxcore, dxgi, sdklayers, structs
from dmlconf.backends.directml.api.structs import data_type_value, operator_structure
from dmlconf.backends.directml.api.vtable import Interface
from dmlconf.backends.directml.dispatch import graph
from dmlconf.catalogue.loader import enumeration, operator, operator_names
from dmlconf.tensors.datatypes import DataType

pytestmark = pytest.mark.native

HEADERS: Final = Path(os.environ.get("DMLCONF_DIRECTX_HEADERS", "/usr/include"))
MINGW: Final = "x86_64-w64-mingw32-gcc"
LACKED_BY_MINGW: Final = frozenset({"ID3D12Device5"})
"""Interfaces that are newer than MinGW's headers."""

ENUMS: Final[Mapping[type[Enum], str]] = {
    dml.DML_FEATURE: "DML_FEATURE_",
    dml.DML_EXECUTION_FLAGS: "DML_EXECUTION_FLAG_",
    dml.DML_CREATE_DEVICE_FLAGS: "DML_CREATE_DEVICE_FLAG_",
    dml.DML_BINDING_TYPE: "DML_BINDING_TYPE_",
    graph.DML_GRAPH_EDGE_TYPE: "DML_GRAPH_EDGE_TYPE_",
    graph.DML_GRAPH_NODE_TYPE: "DML_GRAPH_NODE_TYPE_",
    d3d12.D3D_FEATURE_LEVEL: "D3D_FEATURE_LEVEL_",
    d3d12.D3D12_COMMAND_LIST_TYPE: "D3D12_COMMAND_LIST_TYPE_",
    d3d12.D3D12_HEAP_TYPE: "D3D12_HEAP_TYPE_",
    sdklayers.D3D12_MESSAGE_SEVERITY: "D3D12_MESSAGE_SEVERITY_",
    d3d12.D3D12_QUERY_HEAP_TYPE: "D3D12_QUERY_HEAP_TYPE_",
    d3d12.D3D12_QUERY_TYPE: "D3D12_QUERY_TYPE_",
    d3d12.D3D12_RESOURCE_STATES: "D3D12_RESOURCE_STATE_",
    dxcore.DXCoreAdapterProperty: "(int)DXCoreAdapterProperty::",
}
"""For each enumeration, what stands before the name of a constant in C."""

NAMES_IN_HEADERS: Final = {
    "GENERIC_1_0": "1_0_GENERIC",
    "CORE_1_0": "1_0_CORE",
    "LEVEL_11_0": "11_0",
}
"""The headers' names of constants that have other names in Python."""

TEMPLATES: Final = frozenset(
    {
        *("CreateAdapterList", "GetAdapter", "GetAdapterByLuid", "GetFactory"),
        *("GetProperty", "QueryState", "SetState"),
    }
)
"""Methods whose address is ambiguous, since the headers also have templates of their names."""


def structures(*modules: ModuleType) -> Iterator[Any]:
    for module in modules:
        for name in module.__all__:
            result = getattr(module, name)
            if isinstance(result, type) and issubclass(result, ctypes.Structure | ctypes.Union):
                yield result


def interfaces(*modules: ModuleType) -> list[Interface]:
    result = (getattr(module, name) for module in modules for name in module.__all__)
    return [each for each in result if isinstance(each, Interface)]


def layout(kinds: Iterator[Any]) -> Iterator[tuple[str, int]]:
    """Yield C expressions for sizes and offsets of structures, with the values in Python."""
    for kind in kinds:
        name = kind.__name__
        yield f"sizeof({name})", ctypes.sizeof(kind)
        for member, *_ in kind._fields_:
            yield f"offsetof({name}, {member})", getattr(kind, member).offset


def constants(enums: list[type[Enum]]) -> Iterator[tuple[str, int]]:
    """Yield names of C constants with their values in Python."""
    for enum in enums:
        for each in enum:
            yield ENUMS[enum] + NAMES_IN_HEADERS.get(each.name, each.name), each.value


def static_assertions(keyword: str, expected: Iterator[tuple[str, int]]) -> str:
    return "\n".join(f'{keyword}({text} == {value}, "{text}");' for text, value in expected)


def catalogue_constants() -> Iterator[tuple[str, int]]:
    """Yield names of C constants with their values in the catalogue."""
    for name in operator_names():
        yield f"DML_OPERATOR_{name}", operator(name).type_value
    for data_type in DataType:
        yield f"DML_TENSOR_DATA_TYPE_{data_type}", data_type_value(data_type)
    for name in enumerations():
        result = enumeration(name)
        for constant, value in result.values.items():
            yield result.prefix + constant, value
    for value in dml.FEATURE_LEVELS:
        yield f"DML_FEATURE_LEVEL_{value >> 12}_{value >> 8 & 0xF}", value


def enumerations() -> set[str]:
    fields = (field for name in operator_names() for field in operator(name).fields)
    return {f.base_type for f in fields if f.attribute_kind == "enum" and not f.is_tensor}


@pytest.fixture(scope="module")
def compile_probe(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that compiles C++ with Microsoft's headers, runs it, and returns its output."""
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed")
    if not (HEADERS / "directx" / "DirectML.h").is_file():
        pytest.skip(f"{HEADERS} has no directx/DirectML.h: install directx-headers-dev")
    folder = tmp_path_factory.mktemp("probe")

    def compiled(source: str) -> str:
        text = "#include <cstddef>\n#include <cstdio>\n#include <cstring>\n"
        text += "#include <wsl/winadapter.h>\n#include <directx/d3d12.h>\n"
        text += "#include <directx/DirectML.h>\n#include <directx/dxcore.h>\n" + source
        (folder / "probe.cpp").write_text(text)
        subprocess.run(
            [
                compiler,
                "-std=c++17",
                "-w",
                "-fpermissive",
                "-DDML_TARGET_VERSION=0x6400",
                f"-I{HEADERS}",
                f"-I{HEADERS}/directx",
                f"-I{HEADERS}/wsl/stubs",
                "-o",
                str(folder / "probe"),
                str(folder / "probe.cpp"),
            ],
            check=True,
        )
        done = subprocess.run([folder / "probe"], check=True, capture_output=True, text=True)
        return done.stdout

    return compiled


def test_structures_have_the_sizes_and_offsets_of_the_headers(compile_probe: Any) -> None:
    exported = [*structures(d3d12, sdklayers, dml, graph, structs), dxcore.DXCoreHardwareID]
    assert len(exported) > 20, "the modules export their structures"
    own = (operator_structure(operator(name)) for name in operator_names())
    kinds = iter([*exported, *own])
    compile_probe(static_assertions("static_assert", layout(kinds)) + "\nint main() {}\n")


def test_constants_have_the_values_of_the_headers(compile_probe: Any) -> None:
    modules = (d3d12, sdklayers, dml, dxcore, graph, structs)
    exported = [getattr(module, name) for module in modules for name in module.__all__]
    enums = [each for each in exported if isinstance(each, type) and issubclass(each, Enum)]
    assert set(enums) == ENUMS.keys()
    expected = [*constants(enums), *catalogue_constants()]
    compile_probe(static_assertions("static_assert", iter(expected)) + "\nint main() {}\n")


def test_the_catalogue_has_the_operators_and_levels_of_the_header() -> None:
    path = HEADERS / "directx" / "DirectML.h"
    if not path.is_file():
        pytest.skip(f"{HEADERS} has no directx/DirectML.h: install directx-headers-dev")
    guards: list[str] = []
    levels = {}
    for line in path.read_text("utf-8", "replace").splitlines():
        guard = re.match(r"#if(?:\s+DML_TARGET_VERSION\s*>=\s*0x(\d)(\d)00)?", line)
        if guard:
            guards.append("_".join(guard.groups()) if guard[1] else "")
        elif line.startswith("#endif"):
            guards.pop()
        member = re.match(r"\s+DML_OPERATOR_(\w+),", line)
        if member:
            levels[member[1]] = next(filter(None, reversed(guards)), "1_0")
    levels.pop("INVALID")
    assert {name: str(operator(name).since) for name in operator_names()} == levels
    assert len(levels) == 177  # All operators up to feature level 6_4.


def test_a_wrong_size_makes_the_compiler_fail(compile_probe: Any) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        compile_probe("static_assert(sizeof(DML_TENSOR_DESC) == 17);\nint main() {}\n")


def test_methods_have_the_vtable_slots_of_the_headers(compile_probe: Any) -> None:
    # In g++'s ABI a pointer to a virtual member function is 1 plus the offset of its slot.
    lines = [
        "template <class T> void tell(const char *name, T method) {",
        "  long offset; std::memcpy(&offset, &method, sizeof offset);",
        '  std::printf("%s %ld\\n", name, (offset - 1) / 8); }',
        "int main() {",
    ]
    expected = {}
    for interface in interfaces(d3d12, sdklayers, dml, dxcore):
        for name in (method.name for method in interface.methods):
            if name in TEMPLATES:
                continue
            full = f"{interface.name}::{name}"
            expected[full] = interface.slots[name][0]
            lines.append(f'  tell("{full}", &{full});')
    actual = compile_probe("\n".join([*lines, "}"]))
    assert {k: int(v) for k, v in map(str.split, actual.splitlines())} == expected
    assert len(expected) > 100, "the modules export their interfaces"


def test_interfaces_have_the_iids_of_the_headers(compile_probe: Any) -> None:
    actual = {}
    for file in ("DirectML.h", "d3d12.h", "d3d12sdklayers.h", "dxcore_interface.h"):
        text = (HEADERS / "directx" / file).read_text("utf-8", "replace")
        pattern = r'(?:MIDL_INTERFACE|DML_DECLARE_INTERFACE)\("([0-9a-fA-F-]+)"\)\s*(\w+)'
        actual.update({name: iid.lower() for iid, name in re.findall(pattern, text)})
    declared = {each.name: each.iid for each in interfaces(d3d12, sdklayers, dml, dxcore)}
    assert declared == {name: actual.get(name) for name in declared}


@pytest.fixture(scope="module")
def compile_for_windows(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A function that checks C with MinGW's headers, and raises an error if it does not compile."""
    compiler = shutil.which(MINGW)
    if compiler is None:
        pytest.skip(f"{MINGW} is not installed")
    folder = tmp_path_factory.mktemp("windows")

    def compiled(source: str) -> None:
        text = "#define COBJMACROS\n#define CINTERFACE\n#include <stddef.h>\n#include <windows.h>\n"
        (folder / "probe.c").write_text(
            f"{text}#include <dxgi.h>\n#include <d3d12.h>\n#include <d3d12sdklayers.h>\n{source}\n"
        )
        subprocess.run(
            [compiler, "-std=c11", "-w", "-fsyntax-only", str(folder / "probe.c")], check=True
        )

    return compiled


def test_structures_have_the_sizes_and_offsets_of_mingws_headers(compile_for_windows: Any) -> None:
    kinds = [*structures(d3d12, sdklayers, dxgi)]
    assert len(kinds) > 10, "the modules export their structures"
    compile_for_windows(static_assertions("_Static_assert", layout(iter(kinds))))


def test_methods_have_the_vtable_slots_of_mingws_headers(compile_for_windows: Any) -> None:
    slots = [
        (f"offsetof({interface.name}Vtbl, {name}) / 8", slot)
        for interface in interfaces(d3d12, sdklayers, dxgi)
        if interface.name not in LACKED_BY_MINGW
        for name, (slot, _) in interface.slots.items()
    ]
    assert len(slots) > 100, "the modules export their interfaces"
    compile_for_windows(static_assertions("_Static_assert", iter(slots)))


def test_a_wrong_size_makes_mingws_compiler_fail(compile_for_windows: Any) -> None:
    with pytest.raises(subprocess.CalledProcessError):
        compile_for_windows("_Static_assert(sizeof(D3D12_HEAP_PROPERTIES) == 21);")


def test_interfaces_have_the_iids_of_mingws_headers(compile_for_windows: Any) -> None:
    pattern = r'MIDL_INTERFACE\("([0-9a-fA-F-]+)"\)\s*(\w+)'
    folder = Path(f"/usr/{MINGW.removesuffix('-gcc')}/include")
    actual: dict[str, str] = {}
    for file in ("dxgi.h", "d3d12.h", "d3d12sdklayers.h"):
        text = (folder / file).read_text("utf-8", "replace")
        actual.update({name: iid.lower() for iid, name in re.findall(pattern, text)})
    declared = {
        each.name: each.iid
        for each in interfaces(d3d12, sdklayers, dxgi)
        if each.name not in LACKED_BY_MINGW
    }
    assert declared == {name: actual.get(name) for name in declared}
