"""Find and load DirectML and the libraries that it needs: Direct3D 12, and DXCore in WSL 2."""

from __future__ import annotations

import ctypes
import os
import re
import struct
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from platform import machine
from typing import Any, Final

from dmlconf.backends.directml.api.vtable import HRESULT
from dmlconf.backends.errors import LibraryError
from dmlconf.documents.files import is_file, is_folder
from dmlconf.extras import install_command

__all__ = [
    "LIBRARY_FOLDER_VARIABLE",
    "PATH_VARIABLE",
    "DirectMLFile",
    "Libraries",
    "find",
    "function",
    "load",
    "native_version",
    "wsl_folder",
]

PATH_VARIABLE: Final = "DMLCONF_DIRECTML"
"""The environment variable that names the DirectML to use."""

LIBRARY_FOLDER_VARIABLE: Final = "DMLCONF_WSL_LIBRARIES"
"""The environment variable that names the folder of libd3d12.so and libdxcore.so."""

_WSL_FOLDER: Final = "/usr/lib/wsl/lib"
_LINUX_PACKAGES: Final = ("torch-directml", "tensorflow-directml-plugin", "tensorflow-directml")


@dataclass(frozen=True, slots=True)
class DirectMLFile:
    """The file that DirectML was loaded from.

    Attributes:
        origin: how the file was found, such as `the package onnxruntime-directml`.
        version: `unknown` if it cannot be determined.
        sha256: in hexadecimal.
    """

    path: Path
    origin: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Libraries:
    """The native libraries.

    Attributes:
        folder: the folder of libd3d12.so and libdxcore.so; None on Windows.
    """

    directml: ctypes.CDLL
    d3d12: ctypes.CDLL
    file: DirectMLFile
    folder: Path | None = None


@dataclass(frozen=True, slots=True)
class _Candidate:
    origin: str
    path: Path | None

    def __str__(self) -> str:
        if self.path is None:
            return f"{self.origin}: not installed"
        problem = "a folder, not a file" if is_folder(self.path) else "no such file"
        return f"{self.origin}: {self.path} ({problem})"


def find(path: str | None = None) -> tuple[Path, str]:
    """Return the path of DirectML, and how it was found.

    Args:
        path: the file of DirectML; None to search for it.

    Raises:
        LibraryError: DirectML is not found.
    """
    tried = []
    for candidate in _candidates(path):
        if candidate.path is not None and is_file(candidate.path):
            return candidate.path, candidate.origin
        tried.append(candidate)
    listed = "".join(f"\n  {candidate}" for candidate in tried)
    message = "DirectML was not found" + (f". Tried:{listed}" if tried else "")
    raise LibraryError(message, _advice())


def _candidates(path: str | None) -> Iterator[_Candidate]:
    """Yield where DirectML may be: only the file that the option or the variable names, if any."""
    if path is not None:
        yield _Candidate("the option path", Path(path))
        return
    named = os.environ.get(PATH_VARIABLE)
    if named:
        yield _Candidate(f"the variable {PATH_VARIABLE}", Path(named))
        return
    if sys.platform == "win32":
        yield _Candidate("the package onnxruntime-directml", _redistributable())
        system = Path(os.environ.get("SYSTEMROOT", r"C:\Windows"), "System32", "DirectML.dll")
        yield _Candidate("Windows", system)
    elif sys.platform == "linux":
        for package in _LINUX_PACKAGES:
            yield _Candidate(f"the package {package}", _shared_object(package))


def _redistributable() -> Path | None:
    """Return where the package onnxruntime-directml has DirectML.dll; None without onnxruntime."""
    try:
        spec = find_spec("onnxruntime")
    except (ImportError, ValueError):
        return None
    for folder in (spec and spec.submodule_search_locations) or ():
        return Path(folder, "capi", "DirectML.dll")
    return None


def _shared_object(package: str) -> Path | None:
    """Return the path of the package's libdirectml.so, or None."""
    from importlib import metadata  # Slow to import, and not needed on Windows.

    try:
        files = metadata.files(package) or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name.startswith("libdirectml.") and ".so" in file.suffixes:
            return Path(str(file.locate()))
    return None


def _advice() -> str:
    if sys.platform == "win32":
        install = f"Install a recent one with: {install_command('directml')}"
    elif sys.platform == "linux":
        install = (
            "On Linux, DirectML runs only in WSL 2. torch-directml contains it; without PyTorch:\n"
            "pip install --no-deps torch-directml\n"
            "Without Windows, use the Wine lab: see docs/wine-lab.md."
        )
    else:
        return "DirectML exists only for Windows and WSL 2; --backend numpy runs here."
    return f"{install}\nOr name the file: --directml FILE, or {PATH_VARIABLE}=FILE."


def load(path: str | None = None) -> Libraries:
    """Load DirectML and the libraries that it needs.

    Args:
        path: the file of DirectML; None to search for it.

    Raises:
        LibraryError: a library is not found or cannot be used.
    """
    chosen, origin = find(path)
    folder = None
    if sys.platform == "win32":
        d3d12 = _loaded_library("d3d12.dll", "Direct3D 12")
    else:
        folder = wsl_folder()
        d3d12 = _wsl_libraries(folder)
    try:
        directml = _loaded_library(str(chosen.resolve()), "DirectML")
        function(directml, "DMLCreateDevice1")
    except LibraryError as error:
        origin_note = f"Found by {origin}; expected {_expected()}."
        raise LibraryError(f"{error}\n{origin_note}", _advice()) from error
    content = chosen.read_bytes()
    digest = sha256(content).hexdigest()
    file = DirectMLFile(chosen, origin, native_version(content), digest)
    return Libraries(directml, d3d12, file, folder)


def _expected() -> str:
    name = "DirectML.dll" if sys.platform == "win32" else "libdirectml.so"
    return f"{name} 1.1 or newer, for this Python's processor ({machine()})"


def wsl_folder() -> Path:
    """Return the folder of libd3d12.so and libdxcore.so in WSL 2, which may not exist."""
    return Path(os.environ.get(LIBRARY_FOLDER_VARIABLE) or _WSL_FOLDER)


def _wsl_libraries(folder: Path) -> ctypes.CDLL:
    """Load libdxcore.so and libd3d12.so, which libdirectml.so needs; return Direct3D 12."""
    missing = [name for name in ("libdxcore.so", "libd3d12.so") if not (folder / name).is_file()]
    if missing:
        raise LibraryError(
            f"{' and '.join(missing)} not found in {folder}: Windows puts them there in WSL 2, "
            f"for its graphics driver. To use another folder: {LIBRARY_FOLDER_VARIABLE}=FOLDER."
        )
    _loaded_library(str(folder / "libdxcore.so"), "DXCore", ctypes.RTLD_GLOBAL)
    return _loaded_library(str(folder / "libd3d12.so"), "Direct3D 12", ctypes.RTLD_GLOBAL)


def _loaded_library(name: str, what: str, mode: int = ctypes.DEFAULT_MODE) -> ctypes.CDLL:
    try:
        if sys.platform == "win32":
            library: ctypes.CDLL = ctypes.WinDLL(name)
        else:
            library = ctypes.CDLL(name, mode)
    except OSError as error:
        raise LibraryError(f"{name} cannot be loaded as {what}: {error}") from error
    return library


def function(
    library: ctypes.CDLL, name: str, *arguments: Any, result: Any = HRESULT
) -> Callable[..., Any]:
    """Return a function of a library; `arguments` and `result` are ctypes types.

    Raises:
        LibraryError: the library lacks the function.
    """
    try:
        symbol = getattr(library, name)
    except AttributeError as error:
        path = library._name
        raise LibraryError(f"{path} lacks the function {name}: {_why_lacking(name)}") from error
    symbol.argtypes = arguments
    symbol.restype = result
    callable_: Callable[..., Any] = symbol
    return callable_


def _why_lacking(name: str) -> str:
    if name.startswith("DML"):
        return "it is not DirectML, or is older than DirectML 1.1"
    cause = "it is too old, or a different library of that name"
    if sys.platform == "win32":
        return cause
    return f"{cause}. To use another folder: {LIBRARY_FOLDER_VARIABLE}=FOLDER."


_SIGNATURE: Final = b"\xbd\x04\xef\xfe\x00\x00\x01\x00"
"""The first 8 bytes of VS_FIXEDFILEINFO; the next 8 are the version of a Windows library."""

_TEXT: Final = re.compile(rb"DirectML[ /](\d+\.\d+\.\d+)")
_ELF: Final = b"\x7fELF"

_MARKS: Final = (
    ("1.15.1", b"DML_OPERATOR_FOLD"),
    ("1.14.1", b"DML_OPERATOR_QUANTIZE"),
    ("1.13.1", b"DML_OPERATOR_LP_POOLING1"),
    ("1.12.0", b"DML_OPERATOR_MULTIHEAD_ATTENTION"),
    ("1.10.1", b"ResampleLinear_float32_native_256_1_8"),
    ("1.9.1", b"OneHot_256_uint32_native_uint64_emulated_4"),
    ("1.9.0", b"DML_OPERATOR_RESAMPLE2"),
)
"""Releases, the newest first, each with a name of an operator or kernel that DirectML.dll contains
since that release. Measured on 1.8.0 to 1.15.4.
"""


def native_version(content: bytes) -> str:
    """Return the version of a library's file; `unknown` if it cannot be determined.

    DirectML.dll has its version in its resources; some files have a text such as `DirectML 1.8.0`.
    For other files of Linux, this is the newest release in `_MARKS` whose operator or kernel the
    file names; the file may be newer.
    """
    offset = content.find(_SIGNATURE)
    if offset >= 0 and len(content) >= offset + 16:
        high, low = struct.unpack_from("<II", content, offset + 8)
        parts = (high >> 16, high & 0xFFFF, low >> 16, low & 0xFFFF)
        return ".".join(map(str, parts[: 4 if parts[3] else 3]))
    match = _TEXT.search(content)
    if match:
        return match[1].decode("ascii")
    if content.startswith(_ELF):
        marked = (version for version, name in _MARKS if b"\0" + name + b"\0" in content)
        return next(marked, "unknown")
    return "unknown"
