"""A recording is read back with the same bits, and a replay gives the recorded outcomes.

A digest of each case shows whether the case has changed since it was recorded.

The tested code is in the modules of `dmlconf/backends/recording/`: `file.py` and `entries.py` (the
format), `digest.py`, `model.py` and `backend.py` (the replay).
"""

from __future__ import annotations

import json
import math
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from dmlconf.backends import registry
from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.backends.recording.digest import case_digest, outputs_problem
from dmlconf.backends.recording.file import manifest_of, read_recording, recording_bytes
from dmlconf.backends.recording.model import Mismatch, Recording
from dmlconf.backends.recording.store import StoredRecording
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import Suite
from dmlconf.cases.model import Case
from dmlconf.documents.schema import bundled_schema
from dmlconf.engine.against import suite_recordings
from dmlconf.resources import cases_directory
from dmlconf.tensors.datatypes import Array, DataType
from tests.backends.recordings import (
    DIGESTS_OF_FORMAT_1,
    recording,
    recording_file,
    unpack,
    write_changed,
)
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


def easily_lost(data_type: DataType) -> Array:
    """Return `BITS`, or the extremes of an integer type, 0 and 1."""
    if data_type in BITS:
        unsigned = np.dtype(f"u{data_type.dtype.itemsize}")
        return np.array(BITS[data_type], unsigned).view(data_type.dtype)
    return np.array([data_type.minimum, data_type.maximum, 0, 1], data_type.dtype)


def bits(array: Array) -> tuple[np.dtype[Any], tuple[int, ...], bytes]:
    return array.dtype, array.shape, array.tobytes()


def recording_of_case(case: Case, outcome: Outputs | Rejection) -> Recording:
    return recording({case.identifier: outcome}, {case.identifier: case_digest(case)})


def reference(case: Case) -> Outputs | Rejection:
    outcome = run_case(case)
    assert isinstance(outcome, Outputs | Rejection)
    return outcome


def replay(path: Path, *cases: Case) -> list[Outcome]:
    backend = registry.create(registry.parse(f"recording:{path}"))
    return list(backend.run(cases))


@pytest.mark.parametrize("data_type", DataType)
def test_elements_are_read_back_with_the_same_bits(tmp_path: Path, data_type: DataType) -> None:
    array = easily_lost(data_type).reshape(2, 1, 2)
    path = recording_file(tmp_path, recording({"a": Outputs({"OutputTensor": array})}))
    outcome = read_recording(path).entries["a"].outcome
    assert isinstance(outcome, Outputs)
    assert bits(outcome.arrays["OutputTensor"]) == bits(array)


def test_transposed_and_reversed_views_are_stored_in_row_major_order(tmp_path: Path) -> None:
    transposed = np.arange(6, dtype=np.uint16).reshape(2, 3).T
    reverse = np.arange(3, dtype=np.int32)[::-1]
    path = recording_file(tmp_path, recording({"a": Outputs({"X": transposed, "Y": reverse})}))
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
    outputs_of_one, outputs_of_three = manifest_of(one)[1], manifest_of(three)[1]
    assert outputs_of_one == outputs_of_three


def test_recording_bytes_ignore_case_order_and_seconds() -> None:
    outcomes: list[tuple[str, Outputs | Rejection]] = [
        ("b", Outputs({"X": np.arange(3)})),
        ("a", Outputs({"X": np.arange(5)})),
        ("c", Rejection("CompileOperator", "E_FAIL")),
    ]
    slower = [("b", Outputs({"X": np.arange(3)}, seconds=9.0)), *outcomes[1:]]
    first = recording_bytes(recording(dict(outcomes)))
    assert first == recording_bytes(recording(dict(reversed(slower))))


def test_recording_bytes_ignore_the_order_of_outputs(tmp_path: Path) -> None:
    arrays = {"Z": np.arange(3), "A": np.arange(5)}
    content = recording_bytes(recording({"a": Outputs(arrays)}))
    path = tmp_path / "x.dmlrec"
    path.write_bytes(content)
    assert recording_bytes(read_recording(path)) == content
    assert recording_bytes(recording({"a": Outputs(dict(sorted(arrays.items())))})) == content


def test_manifest_conforms_to_its_schema_with_a_line_per_case() -> None:
    actual = recording({"a": Outputs({"X": np.arange(3)}), "b": Rejection("CreateOperator", "E")})
    text = unpack(recording_bytes(actual))["recording.json"].decode()
    jsonschema.Draft202012Validator(bundled_schema("recording")).validate(json.loads(text))
    starts = [line[:3] for line in text.splitlines()]
    assert [start for start in starts if start in ('"a"', '"b"')] == ['"a"', '"b"']


def test_members_of_the_archive_have_a_fixed_date() -> None:
    with zipfile.ZipFile(BytesIO(recording_bytes(recording({})))) as archive:
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_a_replay_gives_the_recorded_outputs_and_rejections(tmp_path: Path) -> None:
    cases = [build(planned) for planned in plan(tmp_path)]
    outcomes = {case.identifier: reference(case) for case in cases}
    assert set(map(type, outcomes.values())) == {Outputs, Rejection}
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


def test_stale_or_missing_case_is_a_breakdown(tmp_path: Path) -> None:
    case = built(tmp_path, TILE)
    other = built(tmp_path, replace_once(TILE, "[1, 2]", "[1, 3]"))
    path = recording_file(tmp_path, recording_of_case(case, reference(case)))
    renamed = replace_once(TILE, "name: a", "name: b")
    stale, missing = replay(path, other, built(tmp_path, renamed))
    assert stale == Breakdown(
        BreakdownKind.ERROR,
        "the recording has a different desc or different inputs for this case; record it again",
    )
    assert missing == Breakdown(BreakdownKind.ERROR, "the recording has no such case")


def test_recording_with_outputs_unlike_the_desc_is_stale(tmp_path: Path) -> None:
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
def test_digest_covers_desc_and_inputs(tmp_path: Path, old: str, new: str) -> None:
    before = case_digest(built(tmp_path, TILE))
    assert case_digest(built(tmp_path, replace_once(TILE, old, new))) != before


def test_the_digest_covers_the_operator_and_execution_in_place(tmp_path: Path) -> None:
    case = built(tmp_path, TILE)
    others = [
        replace(case, operator_name="FOLD"),
        replace(case, in_place={"OutputTensor": "InputTensor"}),
    ]
    assert len({case_digest(each) for each in (case, *others)}) == 3


def test_zeros_of_both_signs_have_different_digests(tmp_path: Path) -> None:
    zero = built(tmp_path, replace_once(TILE, "[1, 2]", "[0.0, 2]"))
    negative = built(tmp_path, replace_once(TILE, "[1, 2]", "[-0.0, 2]"))
    assert case_digest(zero) != case_digest(negative)


def digest_with(case: Case, value: Any) -> str:
    """Return the digest of a case whose desc has a further attribute with this value."""
    return case_digest(replace(case, desc={**case.desc, "Attribute": value}))


def test_digest_distinguishes_attribute_values(
    tmp_path: Path,
) -> None:
    case = built(tmp_path, TILE)
    next_to_tenth = math.nextafter(0.1, 1)
    different = [0, -0.0, 1, 0.1, next_to_tenth, math.inf, math.nan, None, (1,), "1", {"Scale": 1}]
    assert len({digest_with(case, value) for value in different}) == len(different)


def test_digest_ignores_spelling_of_1_and_order_of_fields(
    tmp_path: Path,
) -> None:
    case = built(tmp_path, TILE)
    assert digest_with(case, 1.0) == digest_with(case, 1) == digest_with(case, True)
    struct, reordered = {"Scale": 1.0, "Bias": 2}, {"Bias": 2.0, "Scale": 1}
    assert digest_with(case, struct) == digest_with(case, reordered)


def test_digest_ignores_what_does_not_change_the_outcome(tmp_path: Path) -> None:
    before = case_digest(built(tmp_path, TILE))
    noted = replace_once(TILE, "name: a", "name: b\n    note: another\n    tags: [x]")
    stated = TILE + "    expect: {OutputTensor: [1, 2, 1, 2]}\n"
    spelled = replace_once(TILE, "values: [1, 2]", "values: [1.0, 2.0]")
    filled = replace_once(TILE, "values: [1, 2]", "fill: {sequence: {start: 1}}")
    for text in (noted, stated, spelled, filled):
        assert case_digest(built(tmp_path, text)) == before


def test_digest_ignores_data_of_a_rejected_case(tmp_path: Path) -> None:
    invalid = replace_once(TILE, "Repeats: [2]", "Repeats: [3]")
    invalid += "    expect: {rejected: E_INVALIDARG}\n"
    before = case_digest(built(tmp_path, invalid))
    without = replace_once(invalid, ", values: [1, 2]", "")
    assert case_digest(built(tmp_path, without)) == before
    other = replace_once(invalid, "Repeats: [3]", "Repeats: [4]")
    assert case_digest(built(tmp_path, other)) != before


def test_the_digest_of_a_known_case_never_changes(tmp_path: Path) -> None:
    # A changed digest makes every recording stale.
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


@pytest.mark.whole
@pytest.mark.parametrize("path", suite_recordings([cases_directory()]), ids=lambda path: path.name)
def test_recordings_of_the_bundled_suite_have_only_its_cases(
    path: Path, bundled_suite: Suite
) -> None:
    known = {planned.identifier for planned in bundled_suite.plan()}
    files = StoredRecording(path).files()
    assert files
    for operator, part in files.items():
        entries = read_recording(part).entries.keys()
        assert not entries - known, f"record again: {part}"
        assert {name.partition("/")[0].upper() for name in entries} == {operator}


@pytest.mark.whole
@pytest.mark.parametrize("path", suite_recordings([cases_directory()]), ids=lambda path: path.name)
def test_no_recording_of_the_bundled_suite_is_stale(path: Path, bundled_suite: Suite) -> None:
    stored, cases = StoredRecording(path), map(build, bundled_suite.plan())
    stale = [case.identifier for case in cases if stored.mismatch(case) is Mismatch.STALE]
    assert not stale, f"record again: {path}"


def test_a_recording_of_format_1_is_still_read(tmp_path: Path) -> None:
    content = recording_bytes(recording({"a": Rejection("CreateOperator", "E_INVALIDARG")}))
    path = write_changed(tmp_path / "x.dmlrec", content, format=1, **DIGESTS_OF_FORMAT_1)
    assert read_recording(path).entries.keys() == {"a"}
