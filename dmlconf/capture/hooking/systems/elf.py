"""The libraries that are loaded on Linux, and their tables of symbols.

Source: glibc's header link.h, and the System V ABI with its supplement for x86-64.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Final

import numpy as np

__all__ = ["DebugState", "Library", "Symbol", "debug_state", "loaded_libraries"]

_STRTAB, _SYMTAB, _RELA, _RELASZ, _STRSZ, _PLTRELSZ, _JMPREL = 5, 6, 7, 8, 10, 2, 23
_GNU_HASH: Final = 0x6FFF_FEF5
"""Tags of entries of the dynamic section."""

_SECTION_LIMIT: Final = 1 << 12
"""How many entries of a library's dynamic section are read."""

_LOADED_SEGMENT: Final = 1
"""PT_LOAD: the segment is part of the library in memory."""

_FUNCTION_RELOCATIONS: Final = (1, 6, 7)
"""R_X86_64_64, R_X86_64_GLOB_DAT and R_X86_64_JUMP_SLOT put a symbol's address into a slot."""

_RELOCATION: Final = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])


class _LinkMap(ctypes.Structure):
    _fields_ = (
        ("l_addr", ctypes.c_uint64),
        ("l_name", ctypes.c_char_p),
        ("l_ld", ctypes.c_uint64),
        ("l_next", ctypes.c_void_p),
        ("l_prev", ctypes.c_void_p),
    )


class DebugState(ctypes.Structure):
    """`struct r_debug`: what the dynamic linker tells debuggers.

    The linker calls the empty function at `r_brk` whenever its list of libraries changes.
    """

    _fields_ = (
        ("r_version", ctypes.c_int),
        ("r_map", ctypes.c_void_p),
        ("r_brk", ctypes.c_uint64),
        ("r_state", ctypes.c_int),
        ("r_ldbase", ctypes.c_uint64),
    )


class Symbol(ctypes.Structure):
    """`Elf64_Sym`: an entry of a table of symbols."""

    _fields_ = (
        ("st_name", ctypes.c_uint32),
        ("st_info", ctypes.c_uint8),
        ("st_other", ctypes.c_uint8),
        ("st_shndx", ctypes.c_uint16),
        ("st_value", ctypes.c_uint64),
        ("st_size", ctypes.c_uint64),
    )


class _ProgramHeader(ctypes.Structure):
    _fields_ = (
        ("p_type", ctypes.c_uint32),
        ("p_flags", ctypes.c_uint32),
        ("p_offset", ctypes.c_uint64),
        ("p_vaddr", ctypes.c_uint64),
        ("p_paddr", ctypes.c_uint64),
        ("p_filesz", ctypes.c_uint64),
        ("p_memsz", ctypes.c_uint64),
        ("p_align", ctypes.c_uint64),
    )


@cache
def debug_state() -> DebugState | None:
    """Return the dynamic linker's `_r_debug`; None if the linker is not glibc's."""
    try:
        return DebugState.in_dll(ctypes.CDLL(None), "_r_debug")
    except ValueError:
        return None


def loaded_libraries() -> Iterator[Library]:
    """Yield the program and all loaded libraries; none without glibc."""
    state = debug_state()
    address = None if state is None else state.r_map
    while address:
        entry = _LinkMap.from_address(address)
        path = (entry.l_name or b"").decode("utf-8", "surrogateescape")
        yield Library(entry.l_addr, path, entry.l_ld)
        address = entry.l_next


@dataclass(frozen=True)
class Library:
    """A loaded library.

    Attributes:
        base: the address that addresses in its file are relative to.
        path: its path; empty for the program.
        dynamic: the address of its dynamic section.
    """

    base: int
    path: str
    dynamic: int

    @cached_property
    def _tags(self) -> Mapping[int, int]:
        words = (ctypes.c_uint64 * (2 * _SECTION_LIMIT)).from_address(self.dynamic)
        tags = {}
        for index in range(0, 2 * _SECTION_LIMIT, 2):
            if not words[index]:
                break
            tags[words[index]] = words[index + 1]
        return tags

    def _table(self, tag: int) -> int | None:
        """Return the absolute address of a table, which some libraries give relative to `base`."""
        address = self._tags.get(tag)
        return address if address is None or address >= self.base else self.base + address

    @property
    def size(self) -> int:
        """Bytes of memory from its base to the end of its last segment."""
        first = int(ctypes.c_uint64.from_address(self.base + 0x20).value)
        count = int(ctypes.c_uint16.from_address(self.base + 0x38).value)
        headers = (_ProgramHeader * count).from_address(self.base + first)
        loaded = (each for each in headers if each.p_type == _LOADED_SEGMENT)
        return max((int(each.p_vaddr + each.p_memsz) for each in loaded), default=0)

    def exported(self, name: str) -> int:
        """Return the address of the `Symbol` of a function that the library exports.

        Raises:
            LookupError: the library exports no function of this name.
        """
        table, symbols = self._table(_GNU_HASH), self._table(_SYMTAB)
        if table is not None and symbols is not None:
            for index in _with_hash(table, _gnu_hash(name)):
                address = symbols + index * ctypes.sizeof(Symbol)
                symbol = Symbol.from_address(address)
                if symbol.st_shndx and self._name(symbol.st_name) == name.encode("ascii"):
                    return address
        raise LookupError(f"{self.path} does not export {name}")

    def slots(self, name: str) -> Iterator[int]:
        """Yield the addresses of the slots that hold the address of an imported function."""
        names = self._offsets(name.encode("ascii") + b"\0")
        symbols = self._table(_SYMTAB)
        if not names or symbols is None:
            return
        for tag, size_tag in ((_JMPREL, _PLTRELSZ), (_RELA, _RELASZ)):
            table, size = self._table(tag), self._tags.get(size_tag, 0)
            if table is None or not size:
                continue
            relocations = np.frombuffer(ctypes.string_at(table, size), _RELOCATION)
            kinds = relocations["info"] & 0xFFFF_FFFF
            wanted = relocations[np.isin(kinds, _FUNCTION_RELOCATIONS)]
            for offset, info in zip(wanted["offset"], wanted["info"], strict=True):
                address = symbols + (int(info) >> 32) * ctypes.sizeof(Symbol)
                if Symbol.from_address(address).st_name in names:
                    yield self.base + int(offset)

    def _name(self, offset: int) -> bytes:
        return ctypes.string_at((self._table(_STRTAB) or 0) + offset)

    def _offsets(self, text: bytes) -> set[int]:
        """Return where a text is in the table of strings, also as the end of a longer text."""
        table = self._table(_STRTAB)
        strings = b"" if table is None else ctypes.string_at(table, self._tags.get(_STRSZ, 0))
        found, start = set(), strings.find(text)
        while start >= 0:
            found.add(start)
            start = strings.find(text, start + 1)
        return found


def _gnu_hash(name: str) -> int:
    result = 5381
    for character in name.encode("ascii"):
        result = (result * 33 + character) & 0xFFFF_FFFF
    return result


def _with_hash(table: int, wanted: int) -> Iterator[int]:
    """Yield the indices of symbols with the wanted hash, apart from its lowest bit.

    `table` is the address of a library's GNU hash table, which does not keep that bit.
    """
    buckets, first, bloom_words, _ = (ctypes.c_uint32 * 4).from_address(table)
    start = table + 16 + 8 * bloom_words
    index = (ctypes.c_uint32 * buckets).from_address(start)[wanted % buckets]
    chain = start + 4 * buckets
    while index >= first:
        value = int(ctypes.c_uint32.from_address(chain + 4 * (index - first)).value)
        if value | 1 == wanted | 1:
            yield index
        if value & 1:
            return
        index += 1
