"""A case file below `cases/shared` gives cases to each of the operators that it names.

The tested code is in `dmlconf/cases/loading/shared.py`, `dmlconf/cases/loading/loader.py`,
`dmlconf/cases/loading/discovery.py` and `dmlconf/cases/loading/validated.py`.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlconf.cases.loading.loader import load_suite
from dmlconf.cases.loading.validated import Validated
from dmlconf.documents.problems import InvalidFilesError
from tests.documents.refusals import write

SHARED = """\
operators: [ELEMENT_WISE_SQRT, ELEMENT_WISE_EXP,
  DML_OPERATOR_ELEMENT_WISE_ABS]
cases:
  - name: no-output
    desc: {InputTensor: {Sizes: [2], DataType: FLOAT32}}
    expect: {rejected: E_INVALIDARG, constraint: required-field}
  - name: of-two
    operators: [ELEMENT_WISE_EXP, ELEMENT_WISE_ABS]
    desc: {OutputTensor: {Sizes: [2], DataType: FLOAT32}}
    expect: {rejected: E_INVALIDARG, constraint: required-field}
"""
"""`no-output` is a case of all three operators, `of-two` of EXP and ABS."""

OWN = """\
operator: ELEMENT_WISE_SQRT
cases:
  - name: own
    desc: {}
    expect: {rejected: E_INVALIDARG, constraint: required-field}
"""


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder with SHARED, and with OWN twice."""
    for folder in ("shared/unary", "element_wise_sqrt", "element_wise_exp", "tile"):
        (tmp_path / folder).mkdir(parents=True)
    write(tmp_path / "shared/unary", SHARED, "invalid.yaml")
    write(tmp_path / "element_wise_sqrt", OWN, "boundary.yaml")
    write(tmp_path / "element_wise_sqrt", OWN, "sizes.yaml")
    return tmp_path


def identifiers(*paths: Path, operators: tuple[str, ...] = ()) -> list[str]:
    return [case.identifier for case in load_suite(paths, operators=operators).plan()]


SQRT = "element_wise_sqrt/invalid/no-output"
OTHERS = [
    "element_wise_exp/invalid/no-output",
    "element_wise_exp/invalid/of-two",
    "element_wise_abs/invalid/no-output",
    "element_wise_abs/invalid/of-two",
]


def test_each_operator_gets_its_cases_of_a_shared_file(
    suite: Path,
) -> None:
    own = ["element_wise_sqrt/boundary/own", SQRT, "element_wise_sqrt/sizes/own"]
    assert identifiers(suite) == [*own, *OTHERS]
    (template,) = {case.template for case in load_suite([suite]).plan() if case.identifier == SQRT}
    assert template.tags == ("invalid",)
    assert template.about.page == "ns-directml-dml_element_wise_sqrt_operator_desc"
    assert template.about.location.path == suite / "shared/unary/invalid.yaml"
    assert template.about.location.line == 4


def test_operators_and_paths_select_cases_of_shared_files(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exp = OTHERS[:2]
    assert identifiers(suite, operators=("ELEMENT_WISE_EXP",)) == exp
    assert identifiers(suite / "element_wise_exp/invalid.yaml") == exp
    assert identifiers(suite / "element_wise_sqrt")[1] == SQRT
    assert identifiers(suite / "element_wise_sqrt/sizes.yaml") == ["element_wise_sqrt/sizes/own"]
    assert sorted(identifiers(suite / "shared")) == sorted([SQRT, *OTHERS])
    assert sorted(identifiers(suite / "shared", suite / "element_wise_exp/invalid.yaml")) == sorted(
        [SQRT, *OTHERS]
    )
    monkeypatch.chdir(suite / "element_wise_sqrt")
    assert identifiers(Path()) == identifiers(suite / "element_wise_sqrt")


def test_a_path_without_cases_is_refused(suite: Path) -> None:
    for path in ("element_wise_exp/sizes.yaml", "tile/invalid.yaml", "tile"):
        with pytest.raises(InvalidFilesError, match=r"there is no such file|holds no case file"):
            load_suite([suite / path])
    assert identifiers(suite / "element_wise_exp") == OTHERS[:2]
    write(suite / "shared", "cases: [not of dmlconf]", "other.yaml")
    assert identifiers(suite / "element_wise_exp/invalid.yaml") == OTHERS[:2]


def test_the_digest_changes_with_a_shared_file(suite: Path) -> None:
    before = load_suite([suite / "element_wise_sqrt"]).digest
    write(suite / "shared/unary", SHARED.replace("[2]", "[3]"), "invalid.yaml")
    assert load_suite([suite / "element_wise_sqrt"]).digest != before


def test_a_cached_shared_file_is_not_read_again(
    suite: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: dict[str, object] = {}

    class Store:
        def get(self, key: str) -> object:
            return kept.get(key)

        def put(self, key: str, value: object) -> bool:
            kept[key] = value
            return True

        def prune(self) -> None:
            """Keep everything."""

    assert Validated(Store()).get(b"") is None
    first = load_suite([suite], store=Store())
    assert len(kept) == 2  # Two of the three files have the same content.
    monkeypatch.setattr("dmlconf.cases.loading.loader.read_document", None)
    again = load_suite([suite], store=Store())
    assert list(map(repr, again.templates)) == list(map(repr, first.templates))
    assert len(again.valid) == len(first.valid) == len(OTHERS) + 3  # Also SQRT, and OWN twice.


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ELEMENT_WISE_EXP, E", "ELEMENT_WISE_LOG, E", "ELEMENT_WISE_LOG is not one of the file's"),
        ("[ELEMENT_WISE_SQRT,", "[ELEMENT_WISE_SQRD,", "no operator ELEMENT_WISE_SQRD"),
        ("operators: [ELEMENT_WISE_SQRT", "page: x\noperators: [ELEMENT_WISE_SQRT", "no page x"),
        ("cases:", "operator: TILE\ncases:", "`operator`"),
        ("InputTensor:", "InputTenser:", "unknown field `InputTenser`"),
    ],
)
def test_a_wrong_shared_file_is_refused_with_a_message(
    suite: Path, old: str, new: str, message: str
) -> None:
    write(suite / "shared/unary", SHARED.replace(old, new), "invalid.yaml")
    with pytest.raises(InvalidFilesError) as refusal:
        load_suite([suite])
    assert message in str(refusal.value)


def test_a_shared_file_must_be_utf_8(suite: Path) -> None:
    file = suite / "shared/unary/invalid.yaml"
    file.write_bytes(b"operators: [\xff\xe9]\ncases: []\n")
    with pytest.raises(InvalidFilesError, match="UTF-8"):
        load_suite([suite / "element_wise_sqrt"])


def test_only_cases_of_shared_files_may_name_operators(suite: Path) -> None:
    text = OWN.replace("    desc:", "    operators: [TILE]\n    desc:")
    write(suite / "element_wise_sqrt", text, "sizes.yaml")
    with pytest.raises(InvalidFilesError, match="belongs to that operator"):
        load_suite([suite])
