"""A large output is recorded as a digest of all elements and a sample of some.

An output with the recorded digest is compared as a whole, and another one at the sample's elements.

The tested code is in `dmlconf/tensors/sample.py`, `samples.py`, `model.py` and `file.py` in
`dmlconf/backends/recording/`, `dmlconf/engine/against.py` and `dmlconf/judging/judge.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.backends.protocol import Outputs
from dmlconf.backends.recording.file import read_recording, recording_bytes
from dmlconf.backends.recording.model import Recording, entry_of
from dmlconf.backends.recording.samples import paired
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, Provenance
from dmlconf.engine.against import AUTO, Expectations, expectations
from dmlconf.judging.judge import judge
from dmlconf.tensors.datatypes import Array
from dmlconf.tensors.sample import sample_of
from dmlconf.verdicts.figures import Figures
from dmlconf.verdicts.verdict import ReasonKind, Status, Verdict
from tests.backends.recordings import recording
from tests.cases.suites import built
from tests.engine.test_against import opened_backend

SIZE = 1 << 15

SAMPLED = 512

EXP = f"""
operator: ELEMENT_WISE_EXP
cases:
  - name: large
    desc:
      InputTensor:
        Sizes: [2, {SIZE // 2}]
        DataType: FLOAT32
        fill: {{uniform: {{low: -4, high: 4, seed: 1}}}}
      OutputTensor: {{Sizes: [2, {SIZE // 2}], DataType: FLOAT32}}
"""


@pytest.fixture
def case(tmp_path: Path) -> Case:
    return built(tmp_path, EXP)


def reference_output(case: Case) -> Array:
    outcome = run_case(case)
    assert isinstance(outcome, Outputs)
    return outcome.arrays["OutputTensor"]


def one_ulp_off(case: Case) -> Array:
    """Return a permitted output, of which elements with odd indices are 1 ULP off."""
    array = reference_output(case)
    return np.where(
        np.arange(SIZE).reshape(array.shape) % 2, np.nextafter(array, np.float32(9)), array
    )


def recording_of(case: Case, output: Array) -> Recording:
    entry = entry_of(case, Outputs({"OutputTensor": output}))
    return replace(recording({}), entries={case.identifier: entry})


def sampled_indices(case: Case) -> Array:
    outcome = recording_of(case, reference_output(case)).entries[case.identifier].outcome
    assert isinstance(outcome, Outputs)
    return outcome.samples["OutputTensor"].indices


def with_wrong_element(array: Array, at: int) -> Array:
    wrong = array.copy()
    wrong.reshape(-1)[at] = -1
    return wrong


def expectations_with(directory: Path, case: Case, recorded: Array, backend: str) -> Expectations:
    """Return the expectations of a run with a recording of this output."""
    folder = directory / "element_wise_exp"
    folder.mkdir(exist_ok=True)
    (folder / "x.dmlrec").write_bytes(recording_bytes(recording_of(case, recorded)))
    suite = load_suite([case.about.location.path])
    with opened_backend(backend) as tested:
        return expectations(AUTO, tested, suite, list(suite.plan()), [directory])


def verdict(
    directory: Path, case: Case, actual: Array, recorded: Array, backend: str = "numpy"
) -> Verdict:
    """Return the verdict on the output `actual` if `recorded` was recorded.

    Args:
        backend: what is said to have computed `actual`. Unless it is `numpy`, the reference itself,
            the reference gives the elements that the recording lacks.
    """
    against = expectations_with(directory, case, recorded, backend).against
    return judge(case, Outputs({"OutputTensor": actual}), against)


def figures(found: Verdict) -> Figures:
    return found.figures["OutputTensor"]


def test_a_large_output_is_recorded_as_a_sample(tmp_path: Path, case: Case) -> None:
    path = tmp_path / "x.dmlrec"
    path.write_bytes(recording_bytes(recording_of(case, reference_output(case))))
    assert path.stat().st_size < 5000 < reference_output(case).nbytes
    outcome = read_recording(path).entries[case.identifier].outcome
    assert isinstance(outcome, Outputs)
    sample = outcome.samples["OutputTensor"]
    assert not outcome.arrays
    assert sample.shape == reference_output(case).shape
    assert sample.dtype == np.float32
    assert sample.values.tobytes() == reference_output(case).reshape(-1)[sample.indices].tobytes()
    assert path.read_bytes() == recording_bytes(read_recording(path))


def test_smaller_outputs_are_recorded_whole(tmp_path: Path) -> None:
    small = built(tmp_path, EXP.replace(f"[2, {SIZE // 2}]", f"[1, {SIZE // 8 - 1}]"))
    outcome = recording_of(small, reference_output(small)).entries[small.identifier].outcome
    assert isinstance(outcome, Outputs)
    assert not outcome.samples
    np.testing.assert_array_equal(outcome.arrays["OutputTensor"], reference_output(small))


def test_an_output_with_the_recorded_digest_is_compared_whole(tmp_path: Path, case: Case) -> None:
    passed = verdict(tmp_path, case, one_ulp_off(case), one_ulp_off(case))
    assert (passed.status, passed.expectation) == (Status.PASSED, Provenance.RECORDED)
    assert figures(passed).elements == SIZE
    assert figures(passed).sample is None


def test_a_recording_that_is_wrong_outside_of_the_sample_fails(tmp_path: Path, case: Case) -> None:
    recorded = with_wrong_element(reference_output(case), outside_of_sample(case))
    failed = verdict(tmp_path, case, recorded, recorded, "faulty:zeros")
    assert failed.status is Status.FAILED
    assert failed.reason is not None
    assert failed.reason.kind is ReasonKind.CONTRADICTION
    assert "-1 is not within" in failed.reason.message


def test_an_output_with_another_digest_is_compared_at_the_sample(
    tmp_path: Path, case: Case
) -> None:
    passed = verdict(tmp_path, case, reference_output(case), one_ulp_off(case))
    assert (passed.status, passed.expectation) == (Status.PASSED, Provenance.RECORDED)
    assert (figures(passed).elements, figures(passed).sample) == (SAMPLED, SAMPLED)
    assert figures(passed).worst_ulp == 1


def test_a_wrong_element_of_the_sample_fails_and_is_located(tmp_path: Path, case: Case) -> None:
    index = int(sampled_indices(case)[300])
    wrong = with_wrong_element(reference_output(case), index)
    failed = verdict(tmp_path, case, wrong, one_ulp_off(case))
    assert failed.status is Status.FAILED
    assert failed.reason is not None
    assert failed.reason.kind is ReasonKind.WRONG_VALUES
    coordinates = [index // (SIZE // 2), index % (SIZE // 2)]
    assert [d["coordinates"] for d in failed.reason.differences] == [coordinates]
    assert figures(failed).worst_coordinates == tuple(coordinates)
    assert f"1 of {SAMPLED} elements" in failed.reason.message


def outside_of_sample(case: Case) -> int:
    return int(np.setdiff1d(np.arange(SIZE), sampled_indices(case))[1000])


def test_the_reference_judges_elements_outside_of_the_sample(tmp_path: Path, case: Case) -> None:
    wrong = with_wrong_element(reference_output(case), outside_of_sample(case))
    assert verdict(tmp_path, case, wrong, one_ulp_off(case), "numpy").status is Status.PASSED
    failed = verdict(tmp_path, case, wrong, one_ulp_off(case), "faulty:zeros")
    assert (failed.status, failed.expectation) == (Status.FAILED, Provenance.RECORDED)
    assert (figures(failed).elements, figures(failed).sample) == (SIZE, SAMPLED)
    assert figures(failed).differing == 1


def test_the_recording_judges_elements_of_the_sample(tmp_path: Path, case: Case) -> None:
    actual = one_ulp_off(case)
    actual[0, 0] = np.nextafter(actual[0, 0], np.float32(np.inf))
    result = verdict(tmp_path, case, actual, one_ulp_off(case), "faulty:zeros")
    # Outside of the sample, elements with odd indices are 1 ULP off the reference. In the sample,
    # only the changed element is 1 ULP off the recording.
    odd = int(np.count_nonzero(sampled_indices(case) % 2))
    assert figures(result).histogram["1"] == SIZE // 2 - odd + 1


def test_all_elements_are_compared_if_the_reference_has_the_digest(
    tmp_path: Path, case: Case
) -> None:
    actual = verdict(tmp_path, case, one_ulp_off(case), reference_output(case), "faulty:zeros")
    assert figures(actual).elements == SIZE
    assert figures(actual).histogram["1"] == SIZE // 2
    assert figures(actual).sample is None


@pytest.mark.slow
def test_a_sample_that_contradicts_the_reference_fails_unless_disputed(
    tmp_path: Path, case: Case
) -> None:
    recorded = reference_output(case) * np.float32(2)
    other = with_wrong_element(recorded, outside_of_sample(case))
    for outcome in (recorded, other, reference_output(case)):
        actual = verdict(tmp_path, case, outcome, recorded, "faulty:zeros")
        assert actual.status is Status.FAILED
        assert actual.reason is not None
        assert actual.reason.kind is ReasonKind.CONTRADICTION
    disputed = replace(case, disputes="reference")
    actual = verdict(tmp_path, disputed, other, recorded, "faulty:zeros")
    assert actual.status is Status.PASSED
    assert figures(actual).elements == SAMPLED


def test_a_replayed_sample_is_judged_at_its_elements(tmp_path: Path, case: Case) -> None:
    outcome = recording_of(case, one_ulp_off(case)).entries[case.identifier].outcome
    passed = judge(case, outcome, run_case)
    assert passed.status is Status.PASSED
    assert figures(passed).elements == SAMPLED
    index = int(sampled_indices(case)[7])
    array = with_wrong_element(one_ulp_off(case), index)
    wrong = recording_of(case, array).entries[case.identifier].outcome
    assert judge(case, wrong, run_case).status is Status.FAILED
    same = recording_of(case, reference_output(case)).entries[case.identifier].outcome
    assert figures(judge(case, same, run_case)).elements == SIZE


def test_two_samples_are_compared_with_each_other(tmp_path: Path, case: Case) -> None:
    one, two = (
        recording_of(case, array).entries[case.identifier].outcome
        for array in (one_ulp_off(case), reference_output(case))
    )
    assert judge(case, one, lambda case: two).status is Status.PASSED
    far = (
        recording_of(case, reference_output(case) * np.float32(2)).entries[case.identifier].outcome
    )
    assert judge(case, one, lambda case: far).status is Status.FAILED


def test_wrong_values_of_a_sample_fail_despite_a_right_digest(tmp_path: Path, case: Case) -> None:
    entry = entry_of(case, Outputs({"OutputTensor": reference_output(case)}))
    assert isinstance(entry.outcome, Outputs)
    sample = entry.outcome.samples["OutputTensor"]
    values = sample.values.copy()
    values[7] = -values[7]
    forged = Outputs({}, samples={"OutputTensor": replace(sample, values=values)})
    verdict = judge(case, forged, run_case)
    assert verdict.status is Status.FAILED
    assert verdict.figures["OutputTensor"].differing == 1


def test_two_samples_are_compared_at_common_elements(case: Case) -> None:
    array = reference_output(case)
    wrong = -array
    here, there = sample_of(wrong, "here", 600), sample_of(array, "there", 500)
    common = set(here.indices.tolist()) & set(there.indices.tolist())
    pair = paired(here, there)
    assert pair.sample is not None
    assert set(pair.sample.indices.tolist()) == common >= {0, SIZE - 1}
    assert pair.actual.tolist() == (-pair.expected).tolist() == pair.sample.values.tolist()
