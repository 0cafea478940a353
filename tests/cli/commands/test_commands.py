"""What `run`, `report`, `list`, `show`, `operators` and `validate` print and write to files.

The tested code is in the modules of these commands, `dmlconf/cli/commands/running/run.py`,
`dmlconf/cli/commands/running/list.py`, `dmlconf/cli/commands/running/show.py`,
`dmlconf/cli/commands/running/operators.py`, `dmlconf/cli/commands/results/report.py` and
`dmlconf/cli/commands/writing/validate.py`, and in `dmlconf/cli/output/console.py`,
`dmlconf/cli/pages/grid.py`, `dmlconf/reports/runs/terminal.py`,
`dmlconf/reports/runs/summary.py`, `dmlconf/reports/runs/json_report.py`,
`dmlconf/reports/operator_text.py`, `dmlconf/cli/pages/show_outcome.py`,
`dmlconf/cli/options/selection.py`, `dmlconf/cases/building/tensor_entry.py` and
`dmlconf/documents/schema.py`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from dmlconf.catalogue.loader import operator, operator_names
from dmlconf.documents.schema import bundled_schema
from dmlconf.reports.formats import RUN_FORMATS
from dmlconf.resources import cases_directory
from tests.cli.process import TILE, dmlconf_here, environment, write

OPEN = """
operator: ELEMENT_WISE_DIVIDE
cases:
  - name: by-zero
    desc: &divide
      ATensor: {Sizes: [1], DataType: INT8, values: [1]}
      BTensor: {Sizes: [1], DataType: INT8, values: [0]}
      OutputTensor: {Sizes: [1], DataType: INT8}
  - name: tagged
    tags: [undefined]
    desc: *divide
"""
"""Integer divisions by 0, for which the rule permits any result."""

MIXED = """
operator: TILE
cases:
  - name: right
    desc: &tile
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
      Repeats: [2]
    expect: {OutputTensor: [1, 2, 1, 2]}
  - name: wrong
    desc: *tile
    expect: {OutputTensor: [1, 2, 3, .inf]}
  - name: unstated
    desc: *tile
"""
"""A case that passes, one that fails, and one that is unchecked."""


def test_report_json_moves_the_table_to_standard_error(
    tmp_path: Path,
) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path, MIXED), "--report", "json")
    assert "FAILED: 1 of 3 cases fails the run" in done.stderr
    report = json.loads(done.stdout)
    jsonschema.Draft202012Validator(bundled_schema("report")).validate(report)
    assert report["summary"] == {
        "passed": 1,
        "failed": 1,
        "broken": 0,
        "unsupported": 0,
        "unchecked": 1,
        "waived": 0,
        "stale": 0,
        "not run": 0,
    }


def test_the_json_report_says_where_outputs_differ(
    tmp_path: Path,
) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path, MIXED), "--report", "json")
    by_name = {verdict["case"]: verdict for verdict in json.loads(done.stdout)["verdicts"]}
    wrong = by_name["tile/tile/wrong"]
    assert wrong["status"] == "failed"
    assert wrong["expectation"] == "documented"
    finite, infinite = wrong["reason"]["differences"]
    assert (finite["coordinates"], finite["off_by"]) == ([2], 2.0)
    assert infinite == {
        "tensor": "OutputTensor",
        "coordinates": [3],
        "expected": "inf",
        "allowed": [[2.0, 2.0]],
        "actual": 2.0,
        "off_by": None,
        "unit": "",
    }


def test_a_failure_shows_the_command_that_repeats_it(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path, MIXED).name)
    assert "expected" in done.stdout
    assert "dmlconf run tile.yaml --case tile/tile/wrong" in done.stdout
    again = dmlconf_here(tmp_path, "run", "tile.yaml", "--case", "tile/tile/wrong")
    assert "FAILED: 1 of 1 case fails the run" in again.stdout


def test_a_report_from_a_log_equals_the_runs(tmp_path: Path) -> None:
    path, log = write(tmp_path, MIXED), tmp_path / "run.jsonl"
    during = dmlconf_here(tmp_path, "run", path, "--log", log, "--report", "junit:during.xml")
    after = dmlconf_here(tmp_path, "report", log, "--report", "junit:after.xml")
    assert during.stdout == after.stdout
    first, second = (tmp_path / "during.xml").read_bytes(), (tmp_path / "after.xml").read_bytes()
    assert first == second
    root = ElementTree.fromstring(first)
    counts = root.get("tests"), root.get("failures"), root.get("skipped")
    assert counts == ("3", "1", "1")


def test_report_without_a_log_takes_the_latest_run(tmp_path: Path) -> None:
    path = write(tmp_path)
    dmlconf_here(tmp_path, "run", path, "-b", "faulty:zeros")
    done = dmlconf_here(tmp_path, "run", path)
    assert "PASSED: 1 passed" in done.stdout
    assert dmlconf_here(tmp_path, "report").stdout == done.stdout


def test_a_run_with_log_is_not_the_latest(tmp_path: Path) -> None:
    dmlconf_here(tmp_path, "run", write(tmp_path), "--log", "run.jsonl")
    latest = dmlconf_here(tmp_path, "report")
    assert latest.returncode == 2
    assert "there is no earlier run" in latest.stderr


def test_every_format_but_github_can_be_a_file(tmp_path: Path) -> None:
    formats = [name for name, each in RUN_FORMATS.items() if each.publish is None]
    assert RUN_FORMATS.keys() - formats == {"github"}
    options = [part for name in formats for part in ("--report", f"{name}:out/{name}")]
    done = dmlconf_here(tmp_path, "run", write(tmp_path, MIXED), *options)
    assert done.returncode == 1
    for name in formats:
        assert "wrong" in (tmp_path / "out" / name).read_text("utf-8"), name


def test_list_names_the_selected_cases_as_text_or_json(tmp_path: Path) -> None:
    path = write(tmp_path, MIXED)
    done = dmlconf_here(tmp_path, "list", path, "-k", "not wrong")
    assert done.stdout.splitlines() == ["tile/tile/right", "tile/tile/unstated"]
    assert done.stderr.strip() == "2 cases"
    as_json = json.loads(dmlconf_here(tmp_path, "list", path, "--json", "--tag", "tile").stdout)
    assert as_json[0]["case"] == "tile/tile/right"
    assert as_json[0]["operator"] == "TILE"


def listed(directory: Path, *arguments: str) -> list[str]:
    """Return the listed cases of GATHER, JOIN and SCATTER_ELEMENTS."""
    paths = [cases_directory() / name for name in ("gather", "join", "scatter_elements")]
    return dmlconf_here(directory, "list", *paths, *arguments).stdout.splitlines()


def test_list_selects_by_tag_and_operator(tmp_path: Path) -> None:
    scatter = listed(tmp_path, "--tag", "documented", "-o", "scatter")
    assert len(scatter) == 2  # The page of SCATTER_ELEMENTS has two examples.
    assert all(line.startswith("scatter_elements/documented/") for line in scatter)


def test_list_selects_by_feature_level(tmp_path: Path) -> None:
    documented = ("--tag", "documented", "-o", "gather", "-o", "join")
    old = listed(tmp_path, *documented, "--feature-level", "1_0")
    assert "join/documented/example-1-only-one-axis-fits" in old
    # Tensors of one to three dimensions, as in the examples of GATHER, need level 3_0.
    assert not any(line.startswith("gather/") for line in old)
    newer = listed(tmp_path, *documented, "--feature-level", "3_0")
    assert any(line.startswith("gather/") for line in newer)


def test_list_quick_takes_every_file_but_models(tmp_path: Path) -> None:
    quick = listed(tmp_path, "-o", "gather", "--quick")
    assert len(quick) < len(listed(tmp_path, "-o", "gather"))
    kinds = [re.split(r"[/[]", line)[1] for line in quick if line.startswith("gather/")]
    files = {path.stem for path in (cases_directory() / "gather").glob("*.yaml")}
    # All cases of these two files have the tag `model`, which `--quick` leaves out.
    assert set(kinds) == files - {"captured", "model"} > {"documented", "matrix", "combinations"}


def test_show_prints_desc_and_errors_of_the_page(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "show", "gather/documented/example-3-swap-columns")
    assert done.returncode == 0
    for text in ("FLOAT32 {3, 2}", "IndexDimensions", "The page is wrong", "{3, 1, 2}"):
        assert text in done.stdout, text


def test_show_prints_which_constraint_is_broken(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "show", "tile/invalid/repeat-of-0")
    assert "rejected with E_INVALIDARG, because it breaks repeats-not-zero" in done.stdout
    assert "all(repeat > 0 for repeat in Repeats)" in done.stdout


EMPTY = """
operator: ELEMENT_WISE_IDENTITY
cases:
  - name: none
    desc:
      InputTensor: {Sizes: [3, 0], DataType: FLOAT32, fill: {integers: {low: 0, high: 9, seed: 1}}}
      OutputTensor: {Sizes: [3, 0], DataType: FLOAT32}
    expect: {rejected: E_INVALIDARG, constraint: sizes-not-zero}
"""
"""An invalid case with tensors of 3 rows without elements."""


def test_show_prints_a_tensor_whose_rows_have_no_elements(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "show", "none", write(tmp_path, EMPTY))
    assert (done.returncode, done.stderr) == (0, "")
    assert "(no elements)" in done.stdout


def test_show_explains_names_in_a_broken_constraint(tmp_path: Path) -> None:
    case = "multihead_attention1/invalid/position-bias-one-too-large"
    actual = " ".join(dmlconf_here(tmp_path, "show", case).stdout.split())
    assert "position-bias-sizes: RelativePositionBiasTensor is None or" in actual
    assert "where TotalSequenceLength = PastSequenceLength + KeyValueSequenceLength" in actual
    assert "where PastSequenceLength = 0 if PastKeyTensor is None" in actual
    assert "HeadSize" not in actual  # The constraint does not use this name.


def test_show_names_the_origin_of_expected_values(tmp_path: Path) -> None:
    name = write(tmp_path, TILE + "    origin: derived by hand\n")
    done = dmlconf_here(tmp_path, "show", "tile/tile/stated", name)
    assert done.returncode == 0, done.stderr
    assert "stated: derived by hand" in done.stdout


@pytest.mark.slow
def test_a_mapping_as_cases_is_reported_once(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "validate", write(tmp_path, "operator: TILE\ncases: {}\n"))
    assert done.returncode == 3
    assert done.stderr.count("must be a list") == 1


def test_a_number_as_tensor_is_reported_once(tmp_path: Path) -> None:
    text = TILE.replace("{Sizes: [2], DataType: FLOAT32, values: [1, 2]}", "5")
    done = dmlconf_here(tmp_path, "validate", write(tmp_path, text))
    assert done.returncode == 3
    assert "must be a mapping or nothing, not 5" in done.stderr
    assert "1 problem found" in done.stderr


def test_show_does_not_run_an_unsupported_case(tmp_path: Path) -> None:
    name = "max_pooling2/boundary/nan-is-passed-over"
    done = dmlconf_here(tmp_path, "show", name, "-b", "faulty:level=1_0")
    assert (done.returncode, done.stderr) == (0, "")
    *_, actual, run, verdict = done.stdout.splitlines()
    assert (actual, run) == ("Actual, by faulty:level=1_0", "  not run")
    assert verdict.startswith("unsupported: needs feature level 2_1 ")


def test_show_suggests_the_nearest_case(tmp_path: Path) -> None:
    gather = cases_directory() / "gather"
    done = dmlconf_here(tmp_path, "show", "gather/documented/example-3-swap-colums", gather)
    assert done.returncode == 5
    assert "did you mean gather/documented/example-3-swap-columns?" in done.stderr


def test_operators_lists_all_operators(tmp_path: Path) -> None:
    everything = dmlconf_here(tmp_path, "operators").stdout
    assert "SCATTER_ELEMENTS (SCATTER)" in everything
    assert set(operator_names()) <= {line.partition(" ")[0] for line in everything.splitlines()}


def test_operators_shows_the_facts_of_one_operator(
    tmp_path: Path,
) -> None:
    one = dmlconf_here(tmp_path, "operators", "argmin").stdout
    for text in (
        "struct DML_ARGMIN_OPERATOR_DESC {",
        "AxisCount of them",
        "axes-in-range",
        "1 to 8",
        "9 questions",  # The cases in `cases/argmin/questions.yaml`.
    ):
        assert text in one, text


@pytest.mark.slow
def test_operators_shows_conditions_of_support_tables(tmp_path: Path) -> None:
    lines = dmlconf_here(tmp_path, "operators", "REDUCE").stdout.splitlines()
    at = lines.index("If Function in ('ARGMIN', 'ARGMAX')")
    assert lines[at + 1].split() == ["Since", "Tensor", "Ranks", "Data", "types"]
    assert lines[at + 3].startswith("4_1    InputTensor")
    conditions = [line for line in lines if line.startswith("If Function")]
    assert len(conditions) == len(set(conditions)) > 3


@pytest.mark.slow
def test_operators_describes_a_rule_of_several_candidates(tmp_path: Path) -> None:
    shown = " ".join(dmlconf_here(tmp_path, "operators", "RESAMPLE2").stdout.split())
    assert "one of several candidates if InterpolationMode == 'NEAREST_NEIGHBOR'" in shown


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CONVOLUTION", "MULTIHEAD_ATTENTION1", "RESAMPLE3"])
def test_operators_fits_80_columns_and_is_complete(tmp_path: Path, name: str) -> None:
    shown = dmlconf_here(tmp_path, "operators", name, COLUMNS="80").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "…" not in shown
    actual = " ".join(shown.split())
    entry = operator(name)
    assert entry.constraints
    for constraint in entry.constraints:
        assert f"{constraint.name} ({constraint.source}" in actual
        assert str(constraint.require) in actual
    for term, meaning in entry.terms.items():
        assert actual.count(f"{term} = {meaning}") == 1
    for field in entry.fields:
        assert f" {field.name};" in actual
    assert "\n\ncases: " in shown


@pytest.mark.slow
def test_operators_indents_wrapped_lines(tmp_path: Path) -> None:
    shown = dmlconf_here(tmp_path, "operators", "CONVOLUTION", COLUMNS="80").stdout
    struct, _, rest = shown.partition("{")[2].partition("};")
    assert all(line.startswith("  ") for line in struct.strip("\n").splitlines())
    assert "without effect: the sizes of the output determine\n  // where the filter" in shown
    errors = rest.partition("Known errors of the page\n")[2].partition("\n\n")[0]
    assert errors
    assert all(line.startswith("  ") for line in errors.splitlines())
    assert "== (FilterTensor.Sizes[1] * GroupCount" in shown


def test_operators_markdown_equals_the_documented_table(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "operators.md").read_text("utf-8")
    table = dmlconf_here(tmp_path, "operators", "--markdown").stdout
    assert table.count("\n") == len(operator_names()) + 2
    assert table in page


def test_validate_counts_the_files_cases_and_operators(tmp_path: Path) -> None:
    right = MIXED.replace("[1, 2, 3, .inf]", "[1, 2, 1, 2]")
    done = dmlconf_here(tmp_path, "validate", write(tmp_path, right))
    known = len(operator_names())
    assert done.stdout.strip() == f"1 case file with 3 cases and {known} operators are valid"


def test_validate_warns_of_cases_that_accept_any_output(tmp_path: Path) -> None:
    file = write(tmp_path, OPEN, "open.yaml")
    done = dmlconf_here(tmp_path, "validate", file)
    assert done.returncode == 0
    assert f"Warning: {file}:4:3: element_wise_divide/open/by-zero: the rules permit" in done.stderr
    assert "     4 |   - name: by-zero\n       |   ^^^^^^^^^^^^^^^" in done.stderr
    assert "tagged" not in done.stderr
    assert "are valid" in done.stdout


def test_validate_can_leave_warnings_out(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "validate", write(tmp_path, OPEN), "--no-warnings")
    assert (done.returncode, done.stderr) == (0, "")


def test_show_escapes_control_characters(tmp_path: Path) -> None:
    text = MIXED.replace("name: right", 'name: right\n    note: "\\e]0;owned\\a\\e[31mred\\u202e"')
    path = write(tmp_path, text)
    shown = dmlconf_here(tmp_path, "show", "tile/tile/right", path)
    assert "\x1b" not in shown.stdout
    assert "\u202e" not in shown.stdout
    assert "\\x1b[31mred\\u202e" in shown.stdout


def test_output_without_a_terminal_has_colours_on_request(
    tmp_path: Path,
) -> None:
    path = write(tmp_path)
    assert "\x1b[" not in dmlconf_here(tmp_path, "run", path).stdout
    assert "\x1b[" in dmlconf_here(tmp_path, "run", path, "--color", "always").stdout
    assert "\x1b[" in dmlconf_here(tmp_path, "run", path, FORCE_COLOR="1").stdout
    never = dmlconf_here(tmp_path, "run", path, "--color", "never", FORCE_COLOR="1")
    assert "\x1b[" not in never.stdout


def test_quiet_prints_failures_and_the_result(tmp_path: Path) -> None:
    done = dmlconf_here(tmp_path, "run", write(tmp_path, MIXED), "-q")
    assert done.stdout.splitlines() == [
        # v9csu is the handle of the case.
        "FAILED tile/tile/wrong: expectation contradicts the reference (v9csu)",
        "FAILED: 1 of 3 cases fails the run (1 failed); 1 passed, 1 unchecked",
    ]


def test_verbose_shows_why_cases_are_unchecked(tmp_path: Path) -> None:
    path = write(tmp_path, MIXED)
    reason = "1 unchecked: no independent expectation"
    assert reason in dmlconf_here(tmp_path, "run", path, "-v").stdout
    assert reason not in dmlconf_here(tmp_path, "run", path).stdout


@pytest.mark.slow
def test_a_closed_pipe_ends_list_without_a_traceback(tmp_path: Path) -> None:
    if os.name == "nt":
        pytest.skip("a POSIX shell is needed")
    done = subprocess.run(
        f"'{sys.executable}' -m dmlconf list -o gather | head -1",
        shell=True,
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.stdout.count("\n") == 1
    assert "Traceback" not in done.stderr


REFUSED = """
operator: TILE
cases:
  - name: too-small
    desc:
      InputTensor: {Sizes: [2], DataType: FLOAT32, values: [1, 2]}
      OutputTensor: {Sizes: [3], DataType: FLOAT32}
      Repeats: [2]
"""
"""Two repeats of 2 elements are 4 elements, not 3."""

REFUSED_IN_A_MATRIX = """
operator: TILE
cases:
  - matrix: {Size: [4, 6, 3]}
    desc:
      InputTensor: {Sizes: "=(Size // 2,)", DataType: FLOAT32, fill: {constant: {value: 1}}}
      OutputTensor: {Sizes: "=(Size,)", DataType: FLOAT32}
      Repeats: [2]
"""
"""Only the last case is invalid: two repeats of 1 element are 2 elements, not 3."""


@pytest.mark.parametrize("text", [REFUSED, REFUSED_IN_A_MATRIX])
@pytest.mark.parametrize(
    "command",
    [
        ("validate",),
        ("run",),
        ("run", "-b", "faulty:zeros"),
        ("record", "-b", "faulty:zeros", "-o", "new.dmlrec"),
    ],
)
def test_an_invalid_case_without_expected_rejection_is_refused(
    tmp_path: Path, command: tuple[str, ...], text: str
) -> None:
    path = write(tmp_path, text)
    name, *options = command
    done = dmlconf_here(tmp_path, name, path, *options)
    assert done.returncode == 3
    assert "output-sizes" in done.stdout + done.stderr
    assert "passed" not in done.stdout
