"""`dmlconf verify` finds what is wrong with a certificate, and says what its result depends on.

The tested code is in `dmlconf/certification/verification.py`, `dmlconf/certification/contents.py`,
`dmlconf/certification/statement.py`, `dmlconf/certification/outcomes.py`,
`dmlconf/certification/logged.py`, `dmlconf/certification/plausibility.py`,
`dmlconf/certification/certificate.py`, `dmlconf/certification/findings.py`,
`dmlconf/certification/acceptance.py`, `dmlconf/certification/profiles.py`,
`dmlconf/documents/trees.py` (levels), `dmlconf/reports/verification.py` and
`dmlconf/cli/commands/certificates/verify.py`.
"""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from random import Random

import pytest
from markdown_it import MarkdownIt

from dmlconf.certification.archive import archive_bytes
from dmlconf.documents.schema import bundled_schema, validator
from tests.certification.forging import Forgery, members, taken_apart, verify_forged
from tests.certification.suite import VENDOR, certify, printed_text, verify, write_suite
from tests.cli.process import TILE
from tests.hostile.cheats.stranger import STRANGER
from tests.hostile.cheats.vendor import VENDOR_CHEATS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the suite and `it.dmlcert`, signed by the vendor."""
    folder = write_suite(tmp_path_factory.mktemp("verification"))
    certify(folder, "--key", "vendor.pem")
    return folder


def test_a_flipped_bit_is_refused_with_its_case(folder: Path) -> None:
    parts = members(folder / "it.dmlcert")
    outputs = bytearray(parts["outputs.bin"])
    # outputs.bin begins with the output of the first case.
    first = taken_apart(folder / "it.dmlcert").outcomes[1]["case"]
    outputs[3] ^= 1
    parts["outputs.bin"] = bytes(outputs)
    (folder / "flipped.dmlcert").write_bytes(archive_bytes(parts))
    done = verify(folder, file="flipped.dmlcert")
    assert done.returncode == 3
    assert "outputs.bin is not what the statement says" in printed_text(done)
    assert f"outputs.bin does not match outcomes.jsonl: {first}" in printed_text(done)


@pytest.mark.parametrize("name", STRANGER)
def test_a_strangers_change_is_refused_or_harmless(folder: Path, name: str) -> None:
    right = (folder / "it.dmlcert").read_bytes()
    path = folder / "stranger.dmlcert"
    path.write_bytes(STRANGER[name](Random(1), right))
    done = verify(folder, "--key", "vendor.pub.pem", file=path.name)
    if done.returncode == 0:
        assert taken_apart(path).members() == taken_apart(right).members()
    else:
        assert done.returncode == 3, printed_text(done)


@pytest.mark.parametrize("name", VENDOR_CHEATS)
def test_a_certificate_of_a_cheating_vendor_does_not_hold(folder: Path, name: str) -> None:
    done = verify_forged(folder, partial(VENDOR_CHEATS[name], Random(1)))
    assert done.returncode in (1, 3), printed_text(done)
    assert "Why it does not hold" in done.stdout


def test_a_feature_level_with_a_line_break_is_refused(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        forgery.predicate["capabilities"]["feature_level"] += "\n"

    done = verify_forged(folder, change)
    assert done.returncode == 3, done.stderr
    assert "`predicate.capabilities.feature_level`: '6_4\\n' does not match" in printed_text(done)


def test_a_wrong_output_logged_as_passed_is_reported(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        output = forgery.line("/stated")["outputs"]["OutputTensor"]
        elements = forgery.elements(output)
        elements[2] = 5
        forgery.store(output, elements)

    done = verify_forged(folder, change)
    assert done.returncode == 1
    message = "the log says `passed`; the outcome is `failed` for `wrong values`: 1 of 4 elements"
    assert message in printed_text(done)
    assert "tile/matrix/stated" in printed_text(done)
    assert "profile small does not allow `failed`" in printed_text(done)


def test_a_case_removed_from_the_outcomes_is_named(folder: Path) -> None:
    case = "tile/matrix/stated"
    done = verify_forged(folder, lambda forgery: forgery.remove(case, of_log=False))
    assert done.returncode == 1
    assert f"outcomes are missing: {case}" in printed_text(done)


def test_a_certificate_lacking_a_case_is_refused(folder: Path) -> None:
    done = verify_forged(folder, lambda forgery: forgery.remove("tile/matrix/stated"))
    assert done.returncode == 3
    assert "run.jsonl has 15 lines, not one for each of 14 cases" in printed_text(done)


def test_a_device_must_have_its_levels_data_types(folder: Path) -> None:
    done = verify_forged(
        folder, partial(VENDOR_CHEATS["a data type that the device is said to lack"], Random(1))
    )
    assert done.returncode == 1
    assert "which the device lacks" in printed_text(done)


def test_an_unaccepted_substrate_excuses_nothing(folder: Path) -> None:
    done = verify_forged(folder, partial(VENDOR_CHEATS["an excuse of one's own"], Random(1)))
    assert done.returncode == 1
    assert "limits of a substrate that you did not accept" in printed_text(done)


def test_an_environment_that_lacks_a_required_field_is_refused(folder: Path) -> None:
    def without(name: str, forgery: Forgery) -> None:
        del forgery.predicate["environment"][name]

    for name in ("version", "backend", "details"):
        done = verify_forged(folder, partial(without, name))
        assert done.returncode == 3, done.stderr
        assert f"`predicate.environment`: '{name}' is a required property" in printed_text(done)


@pytest.mark.parametrize(("lists", "code"), [(96, 0), (97, 3), (500, 3)])
def test_a_statement_of_more_than_100_levels_is_refused(
    folder: Path, lists: int, code: int
) -> None:
    """Four levels contain the lists: statement, predicate, environment and details."""
    deep: list[object] = []
    for _ in range(lists - 1):
        deep = [deep]

    def change(forgery: Forgery) -> None:
        for environment in (forgery.predicate["environment"], forgery.log[0]["environment"]):
            environment["details"] = {"deep": deep}

    done = verify_forged(folder, change)
    assert done.returncode == code, done.stdout
    assert ("nested deeper than 100 levels" in printed_text(done)) is (code == 3)


@pytest.mark.parametrize("stage", ["", "Create Operator", "\x1b[31m", "x" * 101])
def test_a_malformed_stage_of_a_rejection_is_refused(folder: Path, stage: str) -> None:
    def change(forgery: Forgery) -> None:
        forgery.line("/invalid")["rejection"]["stage"] = stage

    done = verify_forged(folder, change)
    assert done.returncode == 3
    assert "rejection.stage" in printed_text(done)


def test_a_version_of_5000_digits_is_accepted(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        for environment in (forgery.predicate["environment"], forgery.log[0]["environment"]):
            environment["version"] = "9" * 5000  # Python's `int` refuses so many.

    assert verify_forged(folder, change).returncode == 0


@pytest.mark.parametrize(
    ("version", "code"),
    [("1.8.0", 1), ("1.10.1", 1), ("1.14.1", 1), ("1.15", 0), ("1.15.4", 0), ("2.0.0", 0)],
)
def test_feature_level_6_4_before_directml_1_15_is_reported(
    folder: Path, version: str, code: int
) -> None:
    def change(forgery: Forgery) -> None:
        for environment in (forgery.predicate["environment"], forgery.log[0]["environment"]):
            environment |= {"backend": "directml", "version": version, "driver": "1"}
            environment["details"] = {"directml_sha256": "0" * 64, "feature_level": "6_4"}
        forgery.predicate["source"]["backend"] = forgery.log[0]["backend"] = "directml"

    done = verify_forged(folder, change)
    assert done.returncode == code, done.stdout
    assert (f"DirectML {version} has no feature level above" in printed_text(done)) is (code == 1)


def test_differences_between_statement_and_log_are_reported(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        header = forgery.log[0]
        header["environment"]["adapter"] = "Contoso"
        header["backend"], header["dmlconf"] = "faulty", "9.8.7"
        header["suite_digest"] = header["catalogue_digest"] = "0" * 64
        header["options"] |= {"profile": "other", "challenge": 7}

    done = verify_forged(folder, change)
    assert done.returncode == 1
    for name in (
        *("environment", "backend", "version of dmlconf", "suite", "catalogue"),
        *("profile", "challenge"),
    ):
        assert f"the statement and the log differ in the {name} " in printed_text(done)


def test_impossible_times_of_a_run_are_reported(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        forgery.log[0]["started"] = "3001-01-01T00:00:00+00:00"
        forgery.log[-1]["finished"] = "3000-01-01T00:00:00+00:00"

    done = verify_forged(folder, change)
    assert done.returncode == 1
    ended = "the run ended at 3000-01-01T00:00:00+00:00, "
    assert f"{ended}before it began at 3001-01-01T00:00:00+00:00" in printed_text(done)
    assert f"{ended}which is in the future" in printed_text(done)


def test_a_recording_declared_as_a_run_is_reported(folder: Path) -> None:
    def change(forgery: Forgery) -> None:
        for environment in (forgery.predicate["environment"], forgery.log[0]["environment"]):
            environment["backend"] = "recording"
        forgery.predicate["source"]["backend"] = forgery.log[0]["backend"] = "recording:it.dmlrec"

    done = verify_forged(folder, change, "--allow-backend", "recording")
    assert done.returncode == 1
    assert "it claims to be of a run, but its backend is a recording" in printed_text(done)
    assert "its environment is that of a recording" in printed_text(done)


def test_other_cases_or_order_in_the_log_are_reported(folder: Path) -> None:
    def rename(forgery: Forgery) -> None:
        forgery.verdicts[0]["case"] = "tile/matrix/other"

    done = verify_forged(folder, rename)
    assert done.returncode == 1
    assert "the log lacks cases of the profile: gemm/matrix[Seed=7]" in printed_text(done)
    assert "the log has cases that the profile lacks: tile/matrix/other" in printed_text(done)

    def swap(forgery: Forgery) -> None:
        forgery.log[1], forgery.log[2] = forgery.log[2], forgery.log[1]
        forgery.count_again()

    done = verify_forged(folder, swap)
    assert done.returncode == 1
    assert "the log's cases are not in the order of the plan" in printed_text(done)


def test_a_challenge_out_of_range_is_refused(folder: Path) -> None:
    for number in (0, 1 << 64):
        forgery = taken_apart(folder / "it.dmlcert")
        forgery.predicate["challenge"] = str(number)
        (folder / "forged.dmlcert").write_bytes(forgery.content(VENDOR))
        done = verify(folder, file="forged.dmlcert")
        assert done.returncode == 3
        assert "the statement: " in printed_text(done)
        assert "challenge" in printed_text(done)


@pytest.mark.hostile
def test_a_log_line_beyond_one_mebibyte_is_refused(folder: Path) -> None:
    def lengthen(forgery: Forgery, count: int) -> None:
        for line in forgery.verdicts[:3]:
            line["facts"] = {"a": [[]] * count}  # In JSON each `[], ` has 4 bytes.

    assert verify_forged(folder, partial(lengthen, count=200_000)).returncode == 0
    done = verify_forged(folder, partial(lengthen, count=300_000))
    assert done.returncode == 3
    assert "run.jsonl:2: a line of more than 1,048,576 bytes" in printed_text(done)


def test_a_challenge_of_the_sender_causes_a_warning(folder: Path) -> None:
    certify(folder, "--challenge", "7", "-o", "challenged.dmlcert")
    done = verify(folder, file="challenged.dmlcert")
    assert done.returncode == 0
    assert "whoever chose its challenge could try many: give yours" in printed_text(done)
    done = verify(folder, "--challenge", "7", file="challenged.dmlcert")
    assert done.returncode == 0
    assert "chose" not in printed_text(done)


def test_the_report_says_that_the_reference_is_no_device(tmp_path: Path) -> None:
    write_suite(tmp_path)
    # The reference cannot judge its own outputs; TILE states them.
    (tmp_path / "suite" / "gemm" / "matrix.yaml").unlink()
    (tmp_path / "suite" / "matrix.yaml").write_text(TILE, encoding="utf-8")
    certify(tmp_path, backend="numpy")
    done = verify(tmp_path)
    assert done.returncode == 0
    assert "it is of numpy, which is dmlconf's own reference, not of a device" in printed_text(done)


def test_the_report_explains_other_versions_and_files(
    folder: Path,
) -> None:
    def change(forgery: Forgery) -> None:
        forgery.predicate["suite"]["sha256"] = "0" * 64
        forgery.predicate["dmlconf"] = forgery.log[0]["dmlconf"] = "9.8.7"

    done = verify_forged(folder, change)
    assert done.returncode == 1
    assert "verify it with the dmlconf 9.8.7 that made it; this is dmlconf" in printed_text(done)

    def same_version(forgery: Forgery) -> None:
        for part in (forgery.predicate["catalogue"], forgery.predicate["profile"]["digest"]):
            part["sha256"] = "0" * 64

    done = verify_forged(folder, same_version)
    assert done.returncode == 1
    again = "verify it with the dmlconf .* that made it; this one has the same version but"
    for text in ("another catalogue of operators", "its profile small is a different one"):
        assert re.search(f"{text}: {again} different files", printed_text(done))


def test_an_unknown_profile_of_a_certificate_is_reported(folder: Path) -> None:
    (folder / "5_0+small.yaml").write_bytes((folder / "small.yaml").read_bytes())
    for name in ("small.yaml", "../small.yaml", "5_0+small.yaml", "6_4+nothing", ""):
        forgery = taken_apart(folder / "it.dmlcert")
        forgery.predicate["profile"]["name"] = name
        (folder / "forged.dmlcert").write_bytes(forgery.content(VENDOR))
        done = verify(folder, file="forged.dmlcert")
        assert done.returncode == 1
        assert "is not known here" in printed_text(done)


def test_other_figures_in_the_log_are_only_reported(
    folder: Path,
) -> None:
    def change(forgery: Forgery) -> None:
        for line in forgery.verdicts:
            for figures in line["figures"].values():
                figures["margin"] = 0.5

    done = verify_forged(folder, change)
    assert done.returncode == 0
    assert "cases have different figures here than in the log" in printed_text(done)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_the_json_report_of_each_result_fits_its_schema(folder: Path, jobs: str) -> None:
    checker = validator(bundled_schema("verification"))
    for file, key, code, result in (
        ("it.dmlcert", "vendor", 0, "holds"),
        ("it.dmlcert", "outsider", 3, "refused"),
        ("missing.dmlcert", "vendor", 3, "refused"),
    ):
        done = verify(folder, "--report", "json", "-j", jobs, "--key", f"{key}.pub.pem", file=file)
        assert done.returncode == code
        data = json.loads(done.stdout)
        checker.validate(data)
        assert data["result"] == result
    done = verify_forged(folder, partial(VENDOR_CHEATS["a wrong bit"], Random(1)))
    assert done.returncode == 1
    done = verify(folder, "--report", "json", "-j", jobs, file="forged.dmlcert")
    data = json.loads(done.stdout)
    checker.validate(data)
    assert data["result"] == "does not hold"
    assert data["summary"] == {"passed": 13, "failed": 1}


def test_unreadable_files_and_other_files_are_told_apart(
    folder: Path,
) -> None:
    done = verify(folder, "--report", "json:read.json", file="missing.dmlcert")
    assert done.returncode == 3
    assert " ".join(done.stdout.split()) == (
        "missing.dmlcert cannot be read: No such file or directory; "
        "expected a certificate that `dmlconf certify` wrote"
    )
    (finding,) = json.loads((folder / "read.json").read_text("utf-8"))["findings"]
    assert finding["kind"] == "not a certificate, or changed after it was made"
    (folder / "text.dmlcert").write_text("x", "utf-8")
    done = verify(folder, file="text.dmlcert")
    assert done.returncode == 3
    assert "cannot be read" not in done.stdout
    assert done.stdout.count("not a certificate, or changed after it was made") == 1


def test_the_markdown_report_is_short_and_has_main_facts(folder: Path) -> None:
    done = verify(folder, "--report", "markdown:page.md")
    assert done.returncode == 0
    page = (folder / "page.md").read_text("utf-8")
    assert len(page.splitlines()) < 60
    html = MarkdownIt("commonmark").enable("table").render(page)
    assert "<h1>Certificate holds</h1>" in html
    for text in ("Feature level", "14 passed", "Signed by", "nobody vouches"):
        assert text in html
