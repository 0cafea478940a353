"""Profiles say which cases a certificate must have, and which verdicts it may have.

The tested code is in `dmlconf/certification/profiles.py`, `dmlconf/certification/waived_limit.py`,
`schemas/profiles/`, `dmlconf/catalogue/model.py` and `dmlconf/cli/options/selection.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.backends.protocol import Capabilities
from dmlconf.cases.building.build import build
from dmlconf.cases.loading.loader import load_suite
from dmlconf.catalogue.levels import highest_level
from dmlconf.catalogue.model import FEATURE_LEVELS, FeatureLevel
from dmlconf.certification.profiles import (
    UnknownProfileError,
    certification_profile,
    lint_profiles,
    profile_names,
    read_profile,
    refusal,
    required_cases,
    shortcomings,
)
from dmlconf.certification.waived_limit import WaivedLimit
from dmlconf.cli.common.cache import user_store
from dmlconf.documents.problems import InvalidFilesError
from dmlconf.resources import cases_directory
from dmlconf.tensors.datatypes import DataType
from dmlconf.verdicts.verdict import Identity, Judgement, Reason, ReasonKind, Status, Verdict
from tests.bundled import bundled
from tests.cli.process import dmlconf_here
from tests.graphs.suites import TWO_NODES, graph_file

TAGGED_MODEL = """
operator: TILE
tags: [model]
cases:
  - name: layer
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 2]}
"""


GRAPH = """
graph: one copy
cases:
  - name: alone
    inputs:
      x: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
    nodes:
      tile:
        operator: TILE
        desc: {InputTensor: x, OutputTensor: {Sizes: [4]}, Repeats: [2]}
    outputs: {y: tile}
"""


def write_tile_files(folder: Path, **files: str) -> Path:
    (folder / "tile").mkdir()
    for name, text in files.items():
        (folder / "tile" / f"{name}.yaml").write_text(text)
    return folder / "tile"


def required(profile: str, folder: Path) -> list[str]:
    plan = load_suite([folder], store=user_store()).plan()
    return [case.identifier for case in required_cases(read_profile(profile), plan)]


def verdict(status: Status, kind: ReasonKind | None = None) -> Verdict:
    reason = None if kind is None else Reason(kind, "message")
    return Verdict(Identity("tile/a", "TILE", ()), Judgement(status, reason=reason))


def test_bundled_profiles_are_complete_and_valid() -> None:
    assert profile_names() == (*map(str, FEATURE_LEVELS), "onnx-core")
    assert lint_profiles() == []


@pytest.mark.slow
@pytest.mark.parametrize("level", ["2_0", "3_0", "5_0"])
def test_a_profile_requires_cases_up_to_its_level(
    level: str,
) -> None:
    plan = list(bundled("gather").plan())
    names = [
        case.identifier
        for case in required_cases(read_profile(f"{level}+model+combinations+captured"), plan)
    ]
    wanted = FeatureLevel.parse(level)
    assert names == [
        case.identifier for case in plan if highest_level(build(case).level_needs) <= wanted
    ]
    assert len(names) > 0


@pytest.mark.parametrize("stem", ["matrix", "invalid", "blocks"])
def test_graphs_are_required_only_by_the_part_graph(tmp_path: Path, stem: str) -> None:
    (tmp_path / f"{stem}.yaml").write_text(GRAPH)
    assert required("6_4", tmp_path) == []
    assert required("6_4+model", tmp_path) == []
    assert required("6_4+graph", tmp_path) == [f"graphs/{stem}/alone"]


@pytest.mark.slow
def test_a_higher_level_requires_all_cases_of_a_lower_level() -> None:
    plan = list(bundled("gather").plan())
    before: set[str] = set()
    for name in map(str, FEATURE_LEVELS):
        profile = read_profile(f"{name}+model+combinations+captured")
        now = {case.identifier for case in required_cases(profile, plan)}
        assert before <= now
        before = now
    assert len(before) == len(plan)


def test_an_operator_of_a_later_level_is_not_required() -> None:
    folder = cases_directory() / "activation_celu"
    assert required("2_1", folder) == []
    assert required("3_0", folder)


def test_model_cases_are_required_only_by_the_part_model(tmp_path: Path) -> None:
    folder = write_tile_files(
        tmp_path, model=TAGGED_MODEL, boundary=TAGGED_MODEL.replace("[model]", "[other]")
    )
    assert required("5_0", folder) == ["tile/boundary/layer"]
    assert required("5_0+model", folder) == ["tile/boundary/layer", "tile/model/layer"]


def test_the_order_of_parts_does_not_change_the_name() -> None:
    assert read_profile("5_0+model+graph").name == read_profile("5_0+graph+model").name


def test_cases_in_a_file_of_unknown_kind_are_not_required(tmp_path: Path) -> None:
    folder = write_tile_files(tmp_path, experiments=TAGGED_MODEL.replace("[model]", "[other]"))
    assert required("6_4", folder) == []


@pytest.mark.parametrize(
    ("status", "kind", "allowed"),
    [
        (Status.PASSED, None, True),
        (Status.WAIVED, ReasonKind.WAIVER, True),
        (Status.WAIVED, ReasonKind.KNOWN_FAULT, True),
        (Status.UNSUPPORTED, ReasonKind.DATA_TYPE, True),
        (Status.UNSUPPORTED, ReasonKind.NOT_DOCUMENTED, True),
        (Status.UNSUPPORTED, ReasonKind.FEATURE_LEVEL, False),
        (Status.UNCHECKED, ReasonKind.ANY_VALUE_PERMITTED, True),
        (Status.UNCHECKED, ReasonKind.NO_INDEPENDENT_EXPECTATION, False),
        (Status.FAILED, ReasonKind.WRONG_VALUES, False),
        (Status.BROKEN, ReasonKind.CRASH, False),
        (Status.STALE, ReasonKind.WAIVED_PASSES, False),
        (Status.NOT_RUN, ReasonKind.INTERRUPTED, False),
    ],
)
def test_refusal_names_the_status_of_disallowed_verdicts(
    status: Status, kind: ReasonKind | None, allowed: bool
) -> None:
    reason = refusal(read_profile("6_4"), verdict(status, kind))
    assert (reason is None) is allowed
    assert reason is None or f"`{status}`" in reason


def test_a_device_needs_the_profiles_level_and_data_types() -> None:
    profile = read_profile("5_0")
    every = frozenset(DataType)
    level = FeatureLevel(5, 0)
    optional = {DataType.FLOAT64, DataType.INT64, DataType.UINT64, DataType.INT4, DataType.UINT4}
    assert shortcomings(profile, Capabilities(level, every - optional)) == []
    for data_type in every - optional:
        [lacking] = shortcomings(profile, Capabilities(level, every - {data_type}))
        assert f"needs {data_type}, which the device lacks" in lacking
    [lacking] = shortcomings(profile, Capabilities(FeatureLevel(4, 1), every))
    assert "needs feature level 5_0" in lacking


def test_unknown_profiles_and_parts_are_explained(
    tmp_path: Path,
) -> None:
    assert certification_profile("ci") is None  # It may name a configuration profile.
    with pytest.raises(UnknownProfileError, match="there is no profile 5_9"):
        read_profile("5_9")
    (tmp_path / "mine.txt").write_text("text", encoding="utf-8")
    with pytest.raises(UnknownProfileError, match=r"mine\.txt; the file of a profile ends in \.y"):
        read_profile(str(tmp_path / "mine.txt"))
    with pytest.raises(UnknownProfileError, match="its parts are model, graph"):
        read_profile("5_0+models")
    with pytest.raises(InvalidFilesError):
        certification_profile(str(tmp_path / "none.yaml"))


OWN_PROFILE = """\
format: 1
profile: our-program
extends: 5_0
operators: [TILE]
kinds: [boundary]
"""


def test_a_profile_file_extends_a_bundled_profile(
    tmp_path: Path,
) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN_PROFILE)
    profile = read_profile(str(path))
    assert (profile.name, profile.feature_level) == ("our-program", FeatureLevel(5, 0))
    names = required(str(path), cases_directory() / "tile")
    assert names
    assert all(name.startswith("tile/boundary/") for name in names)
    assert required(str(path), cases_directory() / "gather") == []


def test_a_profile_takes_an_operator_in_small_letters_and_suggests_one_for_another_name(
    tmp_path: Path,
) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(OWN_PROFILE.replace("TILE", "tile"))
    assert read_profile(str(path)).operators == frozenset({"TILE"})
    path.write_text(OWN_PROFILE.replace("TILE", "Conv"))
    with pytest.raises(InvalidFilesError, match="no operator Conv; did you mean CONVOLUTION"):
        read_profile(str(path))


def test_the_path_of_a_profile_may_have_a_plus(tmp_path: Path) -> None:
    path = tmp_path / "c++" / "a+b.yaml"
    path.parent.mkdir()
    path.write_text(OWN_PROFILE)
    assert read_profile(str(path)).name == "our-program"
    assert read_profile(f"{path}+model+graph").name == "our-program+graph+model"


def test_a_profile_file_may_set_max_waived(tmp_path: Path) -> None:
    assert str(read_profile("5_0").max_waived) == "1%"
    for text, waived in (
        ("0", 0),
        ("7", 7),
        ("50%", 5),
    ):  # The limit, and how many of 10 it permits.
        path = tmp_path / "own.yaml"
        path.write_text(f"{OWN_PROFILE}max_waived: {text}\n")
        limit = read_profile(str(path)).max_waived
        assert limit is not None
        assert not limit.exceeded(waived, 10)
        assert limit.exceeded(waived + 1, 10)


@pytest.mark.parametrize("text", ["0.5%", "99.999999%", "20"])
def test_a_waived_limit_is_shown_as_given(text: str) -> None:
    assert str(WaivedLimit.parse(text)) == text


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("extends: 5_0", "extends: 5_00", 3, "there is no bundled profile 5_00"),
        ("extends: 5_0", "extends: ../../secret", 3, "there is no bundled profile"),
        ("extends: 5_0", "feature_level: 9_9", 3, "there is no feature level 9_9"),
        ("extends: 5_0", "feature_level: five", 3, "a feature level such as 5_0"),
        ("extends: 5_0\n", "", 1, "`feature_level` is missing"),
        ("[TILE]", "[TIEL]", 4, "did you mean TILE?"),
        ("[boundary]", "[]", 5, "kinds"),
        ("kinds: [boundary]", "statuses: {failed: any}", 5, "unknown field `failed`"),
        ("kinds: [boundary]", "statuses: {unsupported: [crash]}", 5, "unsupported"),
        ("kinds: [boundary]", "optional_data_types: [INT7]", 5, "INT7 is not a data type"),
        ("kinds: [boundary]", "max_waived: a few", 5, "neither a number of cases such as 20"),
        ("kinds: [boundary]", "max_waived: 101%", 5, "is more than 100%"),
        ("kinds: [boundary]", "max_waived: -1", 5, "max_waived"),
        ("kinds:", "kind:", 5, "did you mean `kinds`?"),
        ("format: 1", "format: 2", 1, "format"),
    ],
)
def test_an_invalid_profile_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    (tmp_path / "own.yaml").write_text(OWN_PROFILE.replace(old, new))
    done = dmlconf_here(tmp_path, "list", cases_directory() / "tile", "--profile", "own.yaml")
    assert done.returncode == 3
    assert f"own.yaml:{line}:" in done.stderr
    assert message in done.stderr


@pytest.mark.slow
def test_list_names_the_cases_of_a_known_profile(tmp_path: Path) -> None:
    folder = cases_directory() / "gather"
    done = dmlconf_here(tmp_path, "list", folder, "--profile", "5_0")
    assert done.returncode == 0
    assert done.stdout.splitlines() == required("5_0", folder)
    done = dmlconf_here(tmp_path, "list", folder, "--profile", "5_9")
    assert done.returncode == 2
    assert "there is no profile 5_9" in done.stderr


def test_cases_that_state_a_relation_are_not_required(tmp_path: Path) -> None:
    relation = "matrix: {Relation: [order, unfused]}\nrelation: =Relation\n"
    plan = load_suite([graph_file(tmp_path, TWO_NODES, TWO_NODES + relation)]).plan()
    profile = read_profile("6_4+graph")
    assert [case.identifier for case in required_cases(profile, plan)] == ["graphs/graphs/a"]
