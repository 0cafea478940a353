"""Verdicts notice every perturbation under exact rules, and miss some under absolute limits.

The tested code is in `dmlconf/strength/perturbations.py`, `dmlconf/strength/measure.py` and
`dmlconf/reports/strength/perturbations.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.backends.numpy.backend import run_case
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.reference.evaluation import evaluate
from dmlconf.reports.strength.perturbations import Perturbations, kind_shares, weak_kinds
from dmlconf.strength.injection import Site
from dmlconf.strength.measure import Method, Strength, measure
from dmlconf.strength.perturbations import KINDS, PerturbationTally, perturbations

EXACT = """
operator: ELEMENT_WISE_IDENTITY
cases:
  - name: numbers
    desc:
      InputTensor:
        {Sizes: [4, 9], DataType: FLOAT32, fill: {uniform: {low: -2, high: 3, seed: 1}}}
      OutputTensor: {Sizes: [4, 9], DataType: FLOAT32}
  - name: halves
    desc:
      InputTensor:
        {Sizes: [4, 9], DataType: FLOAT16, fill: {uniform: {low: -2, high: 3, seed: 1}}}
      OutputTensor: {Sizes: [4, 9], DataType: FLOAT16}
  - name: integers
    desc:
      InputTensor: {Sizes: [4, 9], DataType: INT8, fill: sequence}
      OutputTensor: {Sizes: [4, 9], DataType: INT8}
"""

ABSOLUTE_LIMIT = """
operator: ELEMENT_WISE_COS
cases:
  - name: near-one
    desc:
      InputTensor:
        {Sizes: [8, 8], DataType: FLOAT32, fill: {uniform: {low: 0, high: 0.01, seed: 1}}}
      OutputTensor: {Sizes: [8, 8], DataType: FLOAT32}
"""

UNDEFINED = """
operator: NONZERO_COORDINATES
cases:
  - name: one-is-nonzero
    desc:
      InputTensor: {Sizes: [2, 3], DataType: FLOAT32, values: [0, 0, 0, 0, 5, 0]}
      OutputCountTensor: {Sizes: [1], DataType: UINT32}
      OutputCoordinatesTensor: {Sizes: [6, 2], DataType: UINT32}
"""
"""A case of which only the first row of coordinates is defined."""


def perturbed(directory: Path, text: str, seed: int = 0) -> Strength:
    file = directory / "suite.yaml"
    file.write_text(text, encoding="utf-8")
    method = Method(defects=False, seed=seed)
    return measure(map(build, load_suite([file]).plan()), run_case, method=method)


def test_an_exact_rule_notices_every_kind_of_perturbation(tmp_path: Path) -> None:
    strength = perturbed(tmp_path, EXACT)
    shares = kind_shares(strength.perturbed)
    assert {each.kind for each in shares} == set(KINDS)
    assert [each.share for each in shares] == [100.0] * len(shares)
    assert list(Perturbations(strength.perturbed, 0).remarks()) == []
    assert strength.mutants == {}


def test_the_closing_sentence_counts_each_perturbation_once() -> None:
    kind = "1,000 ULP in FLOAT32"
    perturbed = {
        (kind, "ELEMENT_WISE_COS"): PerturbationTally(tried=10, caught=0),
        (kind, "ELEMENT_WISE_IDENTITY"): PerturbationTally(tried=10, caught=0),
    }
    assert [each.tried for each in kind_shares(perturbed)] == [20, 10]
    [sentence] = Perturbations(perturbed, 0).sentences()
    assert "0 of 20 perturbed outputs fail" in sentence
    assert "1 of 1 kinds below target" in sentence


def test_an_absolute_limit_misses_1000_ulp(tmp_path: Path) -> None:
    """COS may be off by 0.0008, and 1,000 ULP just below 1 are 1000 * 2**-24, or 0.00006."""
    strength = perturbed(tmp_path, ABSOLUTE_LIMIT)
    kind = "1,000 ULP in FLOAT32"
    tally = strength.perturbed[kind, "ELEMENT_WISE_COS"]
    assert (tally.tried, tally.caught) == (1, 0)
    assert tally.missed == ["element_wise_cos/suite/near-one OutputTensor"]
    assert kind in {each.kind for each in weak_kinds(strength.perturbed, 99)}
    assert strength.perturbed["largest zeroed", "ELEMENT_WISE_COS"].caught == 1


@pytest.mark.parametrize("seed", range(6))
def test_undefined_elements_are_not_perturbed(tmp_path: Path, seed: int) -> None:
    strength = perturbed(tmp_path, UNDEFINED, seed)
    off_by_one = strength.perturbed["integer off by one", "NONZERO_COORDINATES"]
    # The count, and the only defined row of coordinates.
    assert (off_by_one.tried, off_by_one.caught) == (2, 2)


def test_a_seed_decides_which_elements_are_perturbed(tmp_path: Path) -> None:
    file = tmp_path / "suite.yaml"
    file.write_text(ABSOLUTE_LIMIT, encoding="utf-8")
    [case] = map(build, load_suite([file]).plan())
    site = Site(case, evaluate(case), "OutputTensor")

    def outputs(seed: int) -> dict[str, list[float]]:
        allowances = CaseAllowances(case)
        return {kind: array.tolist() for kind, array in perturbations(site, allowances, seed)}

    first, again, other = outputs(3), outputs(3), outputs(4)
    assert first == again
    assert {kind for kind in first if first[kind] == other[kind]} == {"largest zeroed"}
