"""Coverage counts each layer of published networks once if the suite has a case for it.

The cases, whose notes name their networks, are in `cases/*/model.yaml`.

The tested code is in `dmlconf/coverage/networks.py`.
"""

from __future__ import annotations

from pathlib import Path

from dmlconf.cases.loading.loader import load_suite
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
    for name in ("model", "matrix"):  # Only cases in files of the name `model` count.
        (tmp_path / f"{name}.yaml").write_text(CASES)
    coverage = network_coverage(load_suite([tmp_path]).plan())
    assert coverage == [NetworkCoverage("ResNet-50", layers=1, operators=1, cases=3)]


def test_every_case_of_a_model_names_its_network() -> None:
    suite = load_suite(sorted(cases_directory().glob("*/model.yaml")), store=user_store())
    coverage = network_coverage(suite.plan())
    assert sum(each.cases for each in coverage) == sum(1 for _ in suite.plan())
    assert len(coverage) >= 25
    assert sum(each.layers for each in coverage) >= 300
