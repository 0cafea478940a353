"""Coverage counts the layers of published networks that `cases/*/model.yaml` has cases for.

The tested code is in `dmlconf/coverage/networks.py`; the tested page is `docs/models.md`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.model import PlannedCase
from dmlconf.cli.common.cache import user_store
from dmlconf.coverage.networks import NetworkCoverage, network_coverage
from dmlconf.resources import cases_directory

CASES = """\
operator: ACTIVATION_RELU
cases:
  - name: a
    note: "ResNet-50, conv1 (He et al. 2015; torchvision resnet50)."
    matrix: {DataType: [FLOAT32, FLOAT16]}
    desc:
      InputTensor: {Sizes: [3], DataType: =DataType, fill: sequence}
      OutputTensor: {Sizes: [3], DataType: =DataType}
  - name: a-exact
    note: "ResNet-50, conv1 (He et al. 2015; a): integers, so that every sum is exact."
    desc:
      InputTensor: {Sizes: [3], DataType: FLOAT32, fill: sequence}
      OutputTensor: {Sizes: [3], DataType: FLOAT32}
"""


def test_a_layer_in_several_cases_is_one_layer(tmp_path: Path) -> None:
    for name in ("model", "matrix"):  # Only files `model.yaml` count.
        (tmp_path / f"{name}.yaml").write_text(CASES)
    coverage = network_coverage(load_suite([tmp_path]).plan())
    assert coverage == [NetworkCoverage("ResNet-50", layers=1, operators=1, cases=3)]


@pytest.fixture(scope="module")
def plan() -> list[PlannedCase]:
    files = sorted(cases_directory().glob("*/model.yaml"))
    return list(load_suite(files, store=user_store()).plan())


@pytest.mark.slow
def test_every_case_of_a_model_names_its_network(plan: list[PlannedCase]) -> None:
    assert plan
    assert sum(each.cases for each in network_coverage(plan)) == len(plan)


def test_page_on_models_has_current_numbers(plan: list[PlannedCase]) -> None:
    networks = len(network_coverage(plan))
    page = (cases_directory().parent / "docs" / "models.md").read_text("utf-8")
    assert f"has {len(plan):,} cases with the sizes of layers of {networks} published netw" in page


def test_networks_have_at_least_ten_layers_on_average(plan: list[PlannedCase]) -> None:
    coverage = network_coverage(plan)
    assert sum(each.layers for each in coverage) >= 10 * len(coverage)
