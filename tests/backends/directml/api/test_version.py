"""DirectML's version is read from its file: from a resource, a text, or names of operators.

The tested code is in `dmlconf/backends/directml/api/library.py`.
"""

from __future__ import annotations

import struct

import pytest

from dmlconf.backends.directml.api.library import native_version


def shared_object(*names: str) -> bytes:
    return b"\x7fELF" + bytes(60) + b"".join(f"text\0{name}\0".encode() for name in names)


@pytest.mark.parametrize(
    ("parts", "text"), [((1, 15, 4, 0), "1.15.4"), ((10, 0, 19041, 3636), "10.0.19041.3636")]
)
def test_the_version_is_read_from_the_resource(parts: tuple[int, int, int, int], text: str) -> None:
    numbers = (parts[0] << 16 | parts[1], parts[2] << 16 | parts[3])
    # VS_FIXEDFILEINFO begins with this signature and a version of its layout.
    resource = struct.pack("<IIII", 0xFEEF04BD, 0x00010000, *numbers)
    assert native_version(b"MZ" + bytes(99) + resource + bytes(40)) == text


def test_version_in_a_text_comes_before_known_names() -> None:
    assert native_version(shared_object("DirectML 1.8.0", "DML_OPERATOR_FOLD")) == "1.8.0"


def test_file_without_known_content_has_unknown_version() -> None:
    assert native_version(b"\x7fELF" + bytes(64)) == "unknown"


@pytest.mark.parametrize(
    ("names", "version"),
    [
        (["DML_OPERATOR_RESAMPLE2"], "1.9.0"),
        (["DML_OPERATOR_RESAMPLE2", "OneHot_256_uint32_native_uint64_emulated_4"], "1.9.1"),
        (["DML_OPERATOR_LP_POOLING1", "DML_OPERATOR_MULTIHEAD_ATTENTION"], "1.13.1"),
        (["DML_OPERATOR_FOLD", "DML_OPERATOR_QUANTIZE"], "1.15.1"),
        # Only whole names count.
        (["DML_OPERATOR_QUANTIZED_GEMM", "UNDML_OPERATOR_FOLD"], "unknown"),
    ],
)
def test_operators_and_kernels_identify_a_shared_object(names: list[str], version: str) -> None:
    assert native_version(shared_object(*names)) == version


def test_file_that_is_not_elf_has_unknown_version() -> None:
    assert native_version(shared_object("DML_OPERATOR_FOLD")[1:]) == "unknown"
