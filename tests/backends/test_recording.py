"""Reading a recording gives what was written, to the bit; other files are refused.

A recording (`dmlconf/backends/recording`) also has a digest of each case, which shows whether the
case has changed since.
"""

from __future__ import annotations

import json
import math
import os
import random
import zipfile
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from dmlconf.backends import registry
from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import (
    BackendError,
    Breakdown,
    BreakdownKind,
    Capabilities,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.backends.recording import file
from dmlconf.backends.recording.digest import case_digest, outputs_problem
from dmlconf.backends.recording.file import manifest_of, read_head, read_recording, recording_bytes
from dmlconf.backends.recording.model import Entry, Mismatch, Recording
from dmlconf.backends.recording.store import StoredRecording
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import Suite
from dmlconf.cases.model import Case, PlannedCase
from dmlconf.cases.selecting.selection import without_models
from dmlconf.catalogue.model import FeatureLevel
from dmlconf.documents.schema import bundled_schema
from dmlconf.engine.against import suite_recordings
from dmlconf.resources import cases_directory
from dmlconf.tensors.datatypes import Array, DataType
from tests.backends.recordings import ENVIRONMENT, recording, unpack, write_archive, write_changed
from tests.cases.suites import built, replace_once
from tests.engine.cases import plan

BITS = {
    DataType.FLOAT64: [0x7FF0_0000_0000_0001, 0xFFF8_0000_DEAD_BEEF, 1 << 63, 1],
    DataType.FLOAT32: [0x7F80_0001, 0xFFC0_BEEF, 1 << 31, 1],
    DataType.FLOAT16: [0x7C01, 0xFEEF, 1 << 15, 1],
}
"""A signalling NaN, a NaN with a payload, -0, and the smallest subnormal."""

TILE = """\
operator: TILE
cases:
  - name: a
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
"""


def special(data_type: DataType) -> Array:
    if data_type in BITS:
        unsigned = np.dtype(f"u{data_type.dtype.itemsize}")
        return np.array(BITS[data_type], unsigned).view(data_type.dtype)
    return np.array([data_type.minimum, data_type.maximum, 0, 1], data_type.dtype)


def bits(array: Array) -> tuple[np.dtype[Any], tuple[int, ...], bytes]:
    return array.dtype, array.shape, array.tobytes()


def recording_file(directory: Path, source: Recording) -> Path:
    path = directory / "x.dmlrec"
    path.write_bytes(recording_bytes(source))
    return path


def recording_of_case(case: Case, outcome: Outputs | Rejection) -> Recording:
    """Return a recording of one case, with the case's right digest."""
    return recording({case.identifier: outcome}, {case.identifier: case_digest(case)})


def reference(case: Case) -> Outputs | Rejection:
    outcome = run_case(case)
    assert isinstance(outcome, Outputs | Rejection)
    return outcome


def replay(path: Path, *cases: Case) -> list[Outcome]:
    backend = registry.create(registry.parse(f"recording:{path}"))
    return list(backend.run(cases))


@pytest.mark.parametrize("data_type", DataType)
def test_elements_are_read_back_to_the_bit(tmp_path: Path, data_type: DataType) -> None:
    array = special(data_type).reshape(2, 1, 2)
    path = recording_file(tmp_path, recording({"a": Outputs({"OutputTensor": array})}))
    outcome = read_recording(path).entries["a"].outcome
    assert isinstance(outcome, Outputs)
    assert bits(outcome.arrays["OutputTensor"]) == bits(array)


def test_views_of_any_order_are_stored_in_row_major_order(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.uint16).reshape(2, 3).T
    big = np.arange(3, dtype=">i4")
    assert not array.flags.c_contiguous
    path = recording_file(
        tmp_path, recording({"a": Outputs({"X": array, "Y": big.astype("=i4")[::-1]})})
    )
    outcome = read_recording(path).entries["a"].outcome
    assert isinstance(outcome, Outputs)
    assert outcome.arrays["X"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert outcome.arrays["Y"].tolist() == [2, 1, 0]


def test_rejections_and_outcomes_without_outputs_are_read_back(tmp_path: Path) -> None:
    actual = recording({"r": Rejection("CreateOperator", "E_INVALIDARG"), "n": Outputs({})})
    assert read_recording(recording_file(tmp_path, actual)) == actual


def test_arrays_without_elements_are_read_back(tmp_path: Path) -> None:
    empty = np.zeros((2, 0, 3), np.int64)
    path = recording_file(tmp_path, recording({"a": Outputs({"OutputTensor": empty})}))
    outcome = read_recording(path).entries["a"].outcome
    assert isinstance(outcome, Outputs)
    assert bits(outcome.arrays["OutputTensor"]) == bits(empty)


def test_equal_outputs_are_stored_once() -> None:
    array = np.arange(1000, dtype=np.uint32)
    one = recording({"a": Outputs({"X": array})})
    three = recording({name: Outputs({"X": array.copy()}) for name in "abc"})
    assert manifest_of(one)[1] == manifest_of(three)[1]


def test_the_same_outcomes_in_another_order_give_the_same_bytes() -> None:
    outcomes: list[tuple[str, Outputs | Rejection]] = [
        ("b", Outputs({"X": np.arange(3)})),
        ("a", Outputs({"X": np.arange(5)})),
        ("c", Rejection("CompileOperator", "E_FAIL")),
    ]
    slower = [("b", Outputs({"X": np.arange(3)}, seconds=9.0)), *outcomes[1:]]
    first = recording_bytes(recording(dict(outcomes)))
    assert first == recording_bytes(recording(dict(reversed(slower))))


def test_the_order_of_outputs_does_not_matter(tmp_path: Path) -> None:
    arrays = {"Z": np.arange(3), "A": np.arange(5)}
    content = recording_bytes(recording({"a": Outputs(arrays)}))
    path = tmp_path / "x.dmlrec"
    path.write_bytes(content)
    assert recording_bytes(read_recording(path)) == content
    assert recording_bytes(recording({"a": Outputs(dict(sorted(arrays.items())))})) == content


def test_the_manifest_fits_its_schema_and_has_a_line_for_each_case() -> None:
    actual = recording({"a": Outputs({"X": np.arange(3)}), "b": Rejection("CreateOperator", "E")})
    text = unpack(recording_bytes(actual))["recording.json"].decode()
    jsonschema.Draft202012Validator(bundled_schema("recording")).validate(json.loads(text))
    starts = [line[:3] for line in text.splitlines()]
    assert [start for start in starts if start in ('"a"', '"b"')] == ['"a"', '"b"']


def test_members_have_a_fixed_date() -> None:
    import zipfile
    from io import BytesIO

    with zipfile.ZipFile(BytesIO(recording_bytes(recording({})))) as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_replay_gives_the_recorded_outcome_of_every_kind_of_case(tmp_path: Path) -> None:
    cases = [build(planned) for planned in plan(tmp_path)]
    outcomes = {case.identifier: reference(case) for case in cases}
    digests = {case.identifier: case_digest(case) for case in cases}
    path = recording_file(tmp_path, recording(outcomes, digests))
    for case, outcome in zip(cases, replay(path, *cases), strict=True):
        expected = outcomes[case.identifier]
        if isinstance(expected, Rejection):
            assert isinstance(outcome, Rejection)
            assert (outcome.stage, outcome.hresult) == (expected.stage, expected.hresult)
        else:
            assert isinstance(outcome, Outputs)
            assert outcome.arrays.keys() == expected.arrays.keys()
            for name, array in expected.arrays.items():
                assert bits(outcome.arrays[name]) == bits(array)


def test_a_stale_or_missing_case_is_a_breakdown_that_says_why(tmp_path: Path) -> None:
    case = built(tmp_path, TILE)
    other = built(tmp_path, replace_once(TILE, "[1, 2]", "[1, 3]"))
    path = recording_file(tmp_path, recording_of_case(case, reference(case)))
    nameless = replace_once(TILE, "name: a", "name: b")
    stale, missing = replay(path, other, built(tmp_path, nameless))
    assert stale == Breakdown(
        BreakdownKind.ERROR,
        "the recording has a different desc or different inputs for this case; record it again",
    )
    assert missing == Breakdown(BreakdownKind.ERROR, "the recording has no such case")


def test_a_recording_whose_outputs_differ_from_the_desc_is_stale(tmp_path: Path) -> None:
    # Otherwise a recording without outputs would make every result right.
    case = built(tmp_path, TILE)
    assert recording_of_case(case, Outputs({})).find(case) is Mismatch.STALE
    short = Outputs({"OutputTensor": np.zeros(3, np.float32)})
    assert recording_of_case(case, short).find(case) is Mismatch.STALE
    assert outputs_problem(case, short) == "OutputTensor is float32 [3], not float32 [4]"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Repeats: [2]", "Repeats: [3]"),
        ("values: [1, 2]", "values: [2, 1]"),
        ("values: [1, 2]", "values: [1, -2]"),
        ("DataType: FLOAT32, values", "DataType: FLOAT16, values"),
        ("FLOAT32, values", "FLOAT32, Strides: [2], values"),
        ("FLOAT32, values", "FLOAT32, Flags: [OWNED_BY_DML], values"),
        ("FLOAT32, values", "FLOAT32, GuaranteedBaseOffsetAlignment: 256, values"),
        ("FLOAT32, values", "FLOAT32, TotalTensorSizeInBytes: 64, values"),
        ("{Sizes: [4]", "{Sizes: [5]"),
    ],
)
def test_the_digest_covers_desc_and_inputs(tmp_path: Path, old: str, new: str) -> None:
    before = case_digest(built(tmp_path, TILE))
    assert case_digest(built(tmp_path, replace_once(TILE, old, new))) != before


def test_zeros_of_both_signs_have_different_digests(tmp_path: Path) -> None:
    zero = built(tmp_path, replace_once(TILE, "[1, 2]", "[0.0, 2]"))
    negative = built(tmp_path, replace_once(TILE, "[1, 2]", "[-0.0, 2]"))
    assert case_digest(zero) != case_digest(negative)


def test_the_digest_covers_attributes_to_the_bit(tmp_path: Path) -> None:
    case = built(tmp_path, TILE)

    def digest(value: Any) -> str:
        return case_digest(replace(case, desc={**case.desc, "Attribute": value}))

    different = [0, -0.0, 1, 0.1, 0.1 + 2**-56, math.inf, math.nan, None, (1,), "1", {"Scale": 1}]
    assert len(set(map(digest, different))) == len(different)
    assert digest(1.0) == digest(1) == digest(True)
    assert digest({"Scale": 1.0, "Bias": 2}) == digest({"Bias": 2.0, "Scale": 1})


def test_the_digest_leaves_out_what_the_outcome_does_not_depend_on(tmp_path: Path) -> None:
    before = case_digest(built(tmp_path, TILE))
    noted = replace_once(TILE, "name: a", "name: b\n    note: another\n    tags: [x]")
    stated = TILE + "    expect: {OutputTensor: [1, 2, 1, 2]}\n"
    spelled = replace_once(TILE, "values: [1, 2]", "values: [1.0, 2.0]")
    filled = replace_once(TILE, "values: [1, 2]", "fill: {sequence: {start: 1}}")
    for text in (noted, stated, spelled, filled):
        assert case_digest(built(tmp_path, text)) == before


def test_the_digest_ignores_the_data_of_a_case_that_must_be_rejected(tmp_path: Path) -> None:
    invalid = replace_once(TILE, "Repeats: [2]", "Repeats: [3]")
    invalid += "    expect: {rejected: E_INVALIDARG}\n"
    before = case_digest(built(tmp_path, invalid))
    without = replace_once(invalid, ", values: [1, 2]", "")
    assert case_digest(built(tmp_path, without)) == before
    other = replace_once(invalid, "Repeats: [3]", "Repeats: [4]")
    assert case_digest(built(tmp_path, other)) != before


def test_the_digest_of_a_known_case_never_changes(tmp_path: Path) -> None:
    # A changed digest makes every recording stale, so recordings would need a new format number.
    assert case_digest(built(tmp_path, TILE)) == (
        "9a1752b91c8f85d1cc254976a082e8cbf704afe92308251ce83beb2f947932fd"
    )


def test_the_environment_of_a_replay_is_the_recorded_environment(tmp_path: Path) -> None:
    path = recording_file(tmp_path, recording({}))
    backend = registry.create(registry.parse(f"recording:{path}"))
    environment = backend.environment()
    assert (environment.version, environment.adapter) == ("directml 1.15.4", "An adapter")
    assert environment.details["recorded"]["driver"] == "31.0.1"
    assert backend.capabilities() == recording({}).capabilities


def refusal(path: Path) -> str:
    """Return the message with which a file is refused as a recording."""
    with pytest.raises(BackendError) as caught:
        read_recording(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    return message


def test_a_path_that_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    assert "No such file" in refusal(tmp_path / "nothing.dmlrec")
    assert "is a folder, not a regular file" in refusal(tmp_path)
    with pytest.raises(BackendError, match="name the recording to replay"):
        registry.create(registry.parse("recording"))


@pytest.mark.parametrize("content", [b"", b"PK", b"not a recording", b"\x80\x04K\x01."])
def test_a_file_that_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.dmlrec"
    path.write_bytes(content)
    assert "not a recording" in refusal(path)


def test_an_archive_with_other_members_is_refused(tmp_path: Path) -> None:
    path = write_archive(tmp_path / "x.dmlrec", {"word/document.xml": b"<a/>"})
    assert "does not consist of recording.json, outputs.bin" in refusal(path)
    members = unpack(recording_bytes(recording({})))
    write_archive(path, {**members, "more.py": b"print()"})
    assert "does not consist of" in refusal(path)


def test_a_later_format_is_refused_before_anything_else_is_checked(tmp_path: Path) -> None:
    content = recording_bytes(recording({}))
    path = write_changed(tmp_path / "x.dmlrec", content, format=3, cases=None, new="")
    assert "a recording of format 3; this dmlconf reads formats 1 and 2" in refusal(path)


@pytest.mark.parametrize("manifest", [b"[]", b"1", b"{}", b'{"format": true}', b'{"format": "1"}'])
def test_a_manifest_without_a_format_number_is_refused(tmp_path: Path, manifest: bytes) -> None:
    path = write_archive(tmp_path / "x.dmlrec", {"recording.json": manifest, "outputs.bin": b""})
    assert "without a format number" in refusal(path)


LONG_NUMBER = b'{"format": ' + b"9" * 5000 + b"}"


@pytest.mark.parametrize(
    "manifest",
    [b"", b"{", b"\xff", b'{"a": 1, "a": 2}', b'{"a": NaN}', b"[" * 100_000, LONG_NUMBER],
)
def test_a_manifest_that_is_not_valid_json_is_refused(tmp_path: Path, manifest: bytes) -> None:
    path = write_archive(tmp_path / "x.dmlrec", {"recording.json": manifest, "outputs.bin": b""})
    assert len(refusal(path)) < 1000


def test_members_that_would_fill_the_memory_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    actual = recording({"a": Outputs({"X": np.zeros(100_000)})})
    path = recording_file(tmp_path, actual)
    assert path.stat().st_size < 10_000
    monkeypatch.setattr(file, "LARGEST_RECORDING_MEMBER", 500_000)
    assert "larger than the limit of 500,000 bytes" in refusal(path)
    with pytest.raises(BackendError, match="too large"):
        recording_bytes(actual)


DIGEST = "0" * 64
OUTPUT = {"type": "FLOAT32", "sizes": [2], "at": 0}
SAMPLE = OUTPUT | {"sample": 2, "sha256": DIGEST}


@pytest.mark.parametrize(
    "values",
    [
        {"backend": 1},
        {"suite_digest": "a" * 64},
        {"environment": {}},
        {"environment": None},
        {"capabilities": {"feature_level": "6", "data_types": []}},
        {"capabilities": {"feature_level": "6_4", "data_types": ["BFLOAT16"]}},
        {"cases": []},
        {"cases": {"a": None}},
        {"cases": {"a": []}},
        {"cases": {"a": {}}},
        {"cases": {"a": {"digest": DIGEST}}},
        {"cases": {"a": {"digest": "0" * 63, "outputs": {}}}},
        {"cases": {"a": {"digest": "G" * 64, "outputs": {}}}},
        {"cases": {"a": {"digest": 1, "outputs": {}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": []}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {}, "stage": "", "hresult": ""}}},
        {"cases": {"a": {"digest": DIGEST, "stage": "CreateOperator"}}},
        {"cases": {"a": {"digest": DIGEST, "stage": 1, "hresult": "E_FAIL"}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": None}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": {}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"more": 1}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"type": "object"}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"type": "INT4"}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"type": []}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"sizes": [-1]}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"sizes": [1.5]}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"sizes": 2}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"at": -1}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"at": "0"}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"sample": 2}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"sha256": DIGEST}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE | {"sample": 1}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE | {"sample": "2"}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE | {"sha256": "0"}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE | {"sha256": 1}}}}},
        {"cases": {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE | {"sizes": 2}}}}},
    ],
    ids=str,
)
def test_a_manifest_that_does_not_fit_the_schema_is_refused(
    tmp_path: Path, values: dict[str, Any]
) -> None:
    content = recording_bytes(recording({"a": Outputs({"X": np.zeros(2, np.float32)})}))
    path = write_changed(tmp_path / "x.dmlrec", content)
    assert read_recording(path).entries.keys() == {"a"}
    manifest = json.loads(unpack(content)["recording.json"]) | values
    assert not jsonschema.Draft202012Validator(bundled_schema("recording")).is_valid(manifest)
    refusal(write_changed(path, content, **values))


@pytest.mark.parametrize(
    "output",
    [{"at": 1}, {"at": 1 << 40}, {"sizes": [3]}, {"sizes": [1 << 40, 1 << 40]}],
)
def test_outputs_that_are_not_in_the_file_are_refused(
    tmp_path: Path, output: dict[str, Any]
) -> None:
    content = recording_bytes(recording({"a": Outputs({"X": np.zeros(2, np.float32)})}))
    cases = {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | output}}}
    path = write_changed(tmp_path / "x.dmlrec", content, cases=cases)
    assert "the case a: X lies beyond the end of outputs.bin" in refusal(path)


@pytest.mark.parametrize(
    "output",
    [
        {"sample": 3},
        {"sizes": [1]},
        {"sizes": [1 << 40, 1 << 40]},
        {"sample": 1 << 40},
        {"at": 1},
    ],
)
def test_samples_that_are_not_in_the_file_or_the_output_are_refused(
    tmp_path: Path, output: dict[str, Any]
) -> None:
    content = recording_bytes(recording({"a": Outputs({"X": np.zeros(2, np.float32)})}))
    path = write_changed(tmp_path / "x.dmlrec", content)
    sound = {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE}}}
    assert read_recording(write_changed(path, content, cases=sound)).entries.keys() == {"a"}
    faulty = {"a": {"digest": DIGEST, "outputs": {"X": SAMPLE | output}}}
    assert "the case a: " in refusal(write_changed(path, content, cases=faulty))


@pytest.mark.parametrize("sizes", [[1] * 99, [1 << 47, 0, 1 << 47], [1 << 62]])
def test_sizes_that_no_array_has_are_refused(tmp_path: Path, sizes: list[int]) -> None:
    content = recording_bytes(recording({"a": Outputs({"X": np.zeros(2, np.float32)})}))
    cases = {"a": {"digest": DIGEST, "outputs": {"X": OUTPUT | {"sizes": sizes}}}}
    assert "the case a: " in refusal(write_changed(tmp_path / "x.dmlrec", content, cases=cases))


def test_a_case_that_is_listed_twice_is_refused(tmp_path: Path) -> None:
    members = unpack(recording_bytes(recording({"a": Rejection("CreateOperator", "E_FAIL")})))
    text = members["recording.json"].decode()
    (line,) = (line for line in text.splitlines() if line.startswith('"a"'))
    twice = replace_once(text, line, f"{line},\n{line}").encode()
    path = write_archive(tmp_path / "x.dmlrec", {**members, "recording.json": twice})
    assert "the manifest: an object has a duplicate key" in refusal(path)


def test_a_message_has_no_escape_sequences_for_terminals(tmp_path: Path) -> None:
    content = recording_bytes(recording({}))
    path = write_changed(tmp_path / "x.dmlrec", content, cases={"\x1b[31m": None})
    assert "\x1b" not in refusal(path)


def test_truncated_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.dmlrec"
    content = recording_bytes(recording({"a": Outputs({"X": np.arange(99)})}))
    for length in range(len(content)):
        path.write_bytes(content[:length])
        assert "damaged" in refusal(path), length


def test_damaged_files_are_refused_or_have_the_same_content(tmp_path: Path) -> None:
    path = tmp_path / "x.dmlrec"
    content = recording_bytes(recording({"a": Outputs({"X": np.arange(9)})}))
    path.write_bytes(content)
    sound = unpack(content)
    generator = random.Random(0)
    refused = 0
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 1 << generator.randrange(8)
        path.write_bytes(damaged)
        try:
            read_recording(path)
        except BackendError:
            refused += 1
        else:
            # The changed byte is in a date or a flag of the archive, which do not matter.
            assert unpack(bytes(damaged)) == sound
    assert refused > len(content) / 2


def test_entries_with_the_same_content_are_equal() -> None:
    entry = Entry(DIGEST, Rejection("CreateOperator", "E_INVALIDARG"))
    assert entry == Entry(DIGEST, Rejection("CreateOperator", "E_INVALIDARG"))


def stale_cases(stored: StoredRecording, plan: Iterable[PlannedCase]) -> list[str]:
    cases = map(build, plan)
    return [case.identifier for case in cases if stored.mismatch(case) is Mismatch.STALE]


@pytest.mark.whole
@pytest.mark.parametrize("path", suite_recordings([cases_directory()]), ids=lambda path: path.name)
def test_recordings_of_the_bundled_suite_have_only_its_cases_and_current_digests(
    path: Path, bundled_suite: Suite
) -> None:
    stored = StoredRecording(path)
    plan = list(bundled_suite.plan())
    first = {planned.template: planned for planned in reversed(without_models(plan)[0])}
    assert not stale_cases(stored, first.values()), f"record again: {path}"
    known = {planned.identifier for planned in plan}
    for operator, part in stored.files().items():
        entries = read_recording(part).entries.keys()
        assert not entries - known, f"record again: {part}"
        assert {name.partition("/")[0].upper() for name in entries} == {operator}


@pytest.mark.whole
@pytest.mark.parametrize("path", suite_recordings([cases_directory()]), ids=lambda path: path.name)
def test_no_recording_of_the_bundled_suite_is_stale(path: Path, bundled_suite: Suite) -> None:
    assert not stale_cases(StoredRecording(path), bundled_suite.plan()), f"record again: {path}"


def test_a_recording_of_format_1_is_still_read(tmp_path: Path) -> None:
    content = recording_bytes(recording({"a": Rejection("CreateOperator", "E_INVALIDARG")}))
    digests = {"suite_digest": "a" * 64, "catalogue_digest": "b" * 64}
    path = write_changed(tmp_path / "x.dmlrec", content, format=1, **digests)
    assert read_recording(path).entries.keys() == {"a"}
    assert "'suite_digest'" in refusal(write_changed(path, content, format=1))
    refusal(write_changed(path, content, **digests))


def recording_with(**changes: Any) -> Recording:
    """Return a sound recording of one case, with these fields replaced."""
    right = recording({"tile/mixed/unstated": Outputs({"OutputTensor": np.zeros(4, np.float32)})})
    return replace(right, **changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"backend": "numpy"},
            "it names the backend numpy, but its environment is from directml",
        ),
        (
            {"environment": {**ENVIRONMENT, "details": {}}},
            "claims to be from directml, but its environment lacks directml_sha256",
        ),
        (
            {"capabilities": Capabilities(FeatureLevel(2, 1), frozenset(DataType))},
            "its device has feature level 6_4, but its capabilities say 2_1",
        ),
        (
            {"capabilities": Capabilities(FeatureLevel(6, 4), frozenset({DataType.INT32}))},
            "an output of tile/mixed/unstated in FLOAT32, which its capabilities do not list",
        ),
    ],
)
def test_a_recording_that_contradicts_itself_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = tmp_path / "x.dmlrec"
    path.write_bytes(recording_bytes(recording_with(**changes)))
    with pytest.raises(BackendError, match=f"x.dmlrec: contradicts itself: .*{message}"):
        read_recording(path)


def test_outputs_of_a_level_that_the_device_lacks_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.dmlrec"
    details = {**ENVIRONMENT["details"], "feature_level": "2_1"}
    actual = recording_with(
        environment={**ENVIRONMENT, "details": details},
        capabilities=Capabilities(FeatureLevel(2, 1), frozenset(DataType)),
    )
    outcome = next(iter(actual.entries.values()))
    path.write_bytes(recording_bytes(replace(actual, entries={"fold/matrix/x": outcome})))
    with pytest.raises(BackendError, match="fold/matrix/x, which needs feature level 6_4"):
        read_recording(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no such pipes")
def test_a_pipe_is_refused_at_once_although_nothing_writes_to_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.dmlrec")
    for read in (read_recording, read_head):
        with pytest.raises(BackendError, match="is a named pipe, not a regular file"):
            read(tmp_path / "x.dmlrec")


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_unsupported_methods_of_compression_are_refused(tmp_path: Path, method: int) -> None:
    path = tmp_path / "x.dmlrec"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in unpack(recording_bytes(recording_with())).items():
            archive.writestr(name, content)
    with pytest.raises(BackendError, match="uses an unsupported compression method"):
        read_recording(path)


def test_a_manifest_that_is_nested_too_deeply_is_refused(tmp_path: Path) -> None:
    members = unpack(recording_bytes(recording_with()))
    deep = b'{"format": 2, "dmlconf": ' + b"[" * 99_999
    path = write_archive(tmp_path / "x.dmlrec", {**members, "recording.json": deep})
    with pytest.raises(BackendError, match="the manifest: nested deeper than 100 levels"):
        read_recording(path)
