"""The backend `faulty:level=LEVEL` acts like a device of that feature level.

It refuses what later levels introduced, and no case that the level supports fails.

The tested code is in `dmlconf/backends/faulty/levels.py`, `dmlconf/catalogue/levels.py` and
`schemas/operators/`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from dmlconf.backends.faulty.backend import create
from dmlconf.backends.faulty.levels import refusal
from dmlconf.backends.protocol import BackendError, Outputs, Rejection
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import Case, ExpectedRejection
from dmlconf.catalogue.levels import highest_level
from dmlconf.catalogue.model import FEATURE_LEVELS, FeatureLevel
from dmlconf.judging.judge import judge, unsupported_reason
from dmlconf.tensors.datatypes import DataType
from dmlconf.verdicts.verdict import Status
from tests.bundled import bundled

OPERATORS = (
    "activation_softplus",
    "activation_shrink",
    "batch_normalization",
    "convolution",
    "element_wise_clip1",
    "element_wise_pow",
    "element_wise_quantize_linear",
    "gemm",
    "join",
    "graphs/blocks.yaml",
    "graphs/constants.yaml",
    "lstm",
    "mean_variance_normalization",
    "mean_variance_normalization1",
    "padding",
    "padding1",
    "reduce",
    "scatter_elements",
    "tile",
    "top_k",
)


@cache
def sample() -> tuple[Case, ...]:
    """Return every 7th case of OPERATORS."""
    plan = bundled(*OPERATORS).plan()
    return tuple(map(build, list(plan)[::7]))


@cache
def refusals(level: FeatureLevel) -> dict[str, str | None]:
    """Return for each case of the sample why the level refuses it, or None if it does not."""
    return {case.identifier: refusal(level, case) for case in sample()}


@pytest.mark.slow
@pytest.mark.parametrize("level", FEATURE_LEVELS, ids=str)
def test_no_case_that_a_level_supports_fails_at_that_level(level: FeatureLevel) -> None:
    backend = create(f"level={level}")
    cases = [c for c in sample() if unsupported_reason(c, backend.capabilities()) is None]
    cases = [case for case in cases if not _needs_no_check(level, case)]
    assert cases
    for case, outcome in zip(cases, backend.run(cases), strict=True):
        verdict = judge(case, outcome, lambda _: None)
        assert verdict.status is not Status.FAILED, (case.identifier, verdict.reason)
        if case.required_level is not None and not isinstance(case.expectation, ExpectedRejection):
            assert isinstance(outcome, Outputs), (case.identifier, refusal(level, case))


def _needs_no_check(level: FeatureLevel, case: Case) -> bool:
    """Return whether the level computes the case, but its values need no check at this level.

    An earlier level gives the same values, and cases of models state no values.
    """
    if refusals(level)[case.identifier] is not None:
        return False
    earlier = [other for other in FEATURE_LEVELS if other < level]
    return "model" in case.tags or bool(earlier and refusals(earlier[-1])[case.identifier] is None)


@pytest.mark.slow
@pytest.mark.parametrize("level", FEATURE_LEVELS, ids=str)
def test_level_refuses_exactly_cases_of_later_levels(level: FeatureLevel) -> None:
    refused = 0
    for case in sample():
        if case.required_level is None or isinstance(case.expectation, ExpectedRejection):
            continue
        # `refusal` does not use `level_needs`.
        needed = highest_level(case.level_needs)
        lacking = refusals(level)[case.identifier]
        assert (lacking is None) == (needed <= level), (case.identifier, lacking, needed)
        refused += lacking is not None
    assert bool(refused) == (level < FEATURE_LEVELS[-1])


WRAP_PADDING = """
  - name: pair
    desc:
      InputTensor: {Sizes: [1, 1, 1, 2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [1, 1, 1, 3], DataType: FLOAT32}
      PaddingMode: WRAP
      PaddingValue: 0
      StartPadding: [0, 0, 0, 1]
      EndPadding: [0, 0, 0, 0]
    expect: {OutputTensor: [2, 1, 2]}
"""
"""A case with a padding mode that feature level 6_4 introduced."""


def test_a_refusal_names_the_unsupported_part_and_is_e_invalidarg(tmp_path: Path) -> None:
    (tmp_path / "padding.yaml").write_text(
        "operator: PADDING\ncases:" + WRAP_PADDING, encoding="utf-8"
    )
    (case,) = map(build, load_suite([tmp_path]).plan())
    assert refusal(FeatureLevel(6, 3), case) == "DML_PADDING_MODE_WRAP"
    assert refusal(FeatureLevel(6, 4), case) is None
    (old,) = create("level=6_3").run([case])
    (new,) = create("level=6_4").run([case])
    assert isinstance(old, Rejection)
    assert (old.stage, old.hresult) == ("CreateOperator", "E_INVALIDARG")
    assert isinstance(new, Outputs)
    assert new.arrays["OutputTensor"].tolist() == [[[[2, 1, 2]]]]


def test_graph_needs_levels_of_compile_graph_and_constants() -> None:
    plan = bundled("graphs/constants.yaml").plan()
    case = next(build(p) for p in plan if p.template.identifier.endswith("/constant-node"))
    assert refusal(FeatureLevel(2, 0), case) == "IDMLDevice1::CompileGraph"
    assert (refusal(FeatureLevel(6, 1), case) or "").startswith("the constant node ")
    assert refusal(FeatureLevel(6, 2), case) is None


@pytest.mark.parametrize(
    ("level", "lacking"),
    [
        ("2_1", ("FLOAT64", "INT64", "UINT64", "INT4", "UINT4")),
        ("3_0", ("INT4", "UINT4")),
        ("6_3", ()),
    ],
)
def test_a_level_lacks_the_data_types_that_later_levels_introduced(
    level: str, lacking: tuple[str, ...]
) -> None:
    has = create(f"level={level}").capabilities()
    assert has.feature_level == FeatureLevel.parse(level)
    assert frozenset(DataType) - has.data_types == set(map(DataType, lacking))


def test_unknown_level_and_further_options_are_refused() -> None:
    with pytest.raises(BackendError, match="no feature level '7_0'"):
        create("level=7_0")
    with pytest.raises(BackendError, match="level=3_1"):
        create("level=3_1,on=x")
