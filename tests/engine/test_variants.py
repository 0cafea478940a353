"""Each case runs in all variants of a backend, and its verdict says which variant is wrong.

The tested code is in `dmlconf/engine/variants.py`, `dmlconf/backends/options.py`,
`dmlconf/backends/registry.py`, `dmlconf/engine/session.py`, `dmlconf/verdicts/verdict.py`,
`dmlconf/diagnosis/groups.py`, `dmlconf/reports/runs/remarks.py` and
`dmlconf/reports/runs/shared_properties.py`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

from dmlconf.backends import registry
from dmlconf.backends.options import split_options, variants_of
from dmlconf.backends.protocol import BackendError
from dmlconf.cases.loading.loader import load_suite
from dmlconf.diagnosis.groups import operator_failures
from dmlconf.documents.schema import bundled_schema
from dmlconf.engine.session import OpenBackend, in_process, open_backend, reference
from dmlconf.engine.variants import judged_variants
from dmlconf.reports.runs.remarks import variant_lines
from dmlconf.reports.runs.shared_properties import shared_lines
from dmlconf.run_log.log import RunLog, verdict_data, verdict_of
from dmlconf.verdicts.verdict import ReasonKind, Status, VariantResult, Verdict, failing_variants
from dmlconf.workers.execution import Limits
from tests.engine.cases import plan, write
from tests.reports.logs import HEADER

EXP = """
operator: ELEMENT_WISE_EXP
cases:
  - name: some
    desc:
      InputTensor: {Sizes: [4], DataType: FLOAT32, values: [0.5, 1, 2, 3]}
      OutputTensor: {Sizes: [4], DataType: FLOAT32}
"""
"""A case whose rule permits small errors."""

NO_FAULT = "faulty:level=6_4"
"""A backend that is right in every case of TILE and EXP."""


def opened(**backends: str) -> OpenBackend:
    """Return a backend with a variant `half=NAME` for each argument NAME=BACKEND."""
    variants = {}
    for label, name in backends.items():
        parsed = registry.parse(name)
        variants[f"half={label}"] = in_process(parsed, registry.create(parsed))
    return replace(next(iter(variants.values())), variants=variants)


def verdicts(directory: Path, *names: str, **backends: str) -> list[Verdict]:
    tested = registry.parse("faulty:zeros")
    return list(
        judged_variants(plan(directory, *names), opened(**backends), reference("numpy", tested))
    )


def test_both_stands_for_all_values_of_an_option() -> None:
    choices = {"metacommands": ("on", "off"), "half": ("off", "on")}
    assert variants_of("adapter=1,half=both", choices) == {
        "half=off": "adapter=1,half=off",
        "half=on": "adapter=1,half=on",
    }
    assert list(variants_of("half=both,metacommands=both", choices)) == [
        "metacommands=on,half=off",
        "metacommands=on,half=on",
        "metacommands=off,half=off",
        "metacommands=off,half=on",
    ]
    # `adapter` has no list of values: `both` is the name of an adapter.
    assert variants_of("adapter=both,half=on", choices) == {}


def test_last_value_of_an_option_decides_on_variants() -> None:
    choices = {"half": ("off", "on")}
    assert variants_of("half=both,half=off", choices) == {}
    variants = variants_of("half=off,half=both", choices)
    assert {label: split_options(text)[1] for label, text in variants.items()} == {
        "half=off": {"half": "off"},
        "half=on": {"half": "on"},
    }


def test_compile_both_of_directml_makes_two_variants() -> None:
    backend = registry.parse("directml:compile=both,path=x.dll")
    assert {label: str(name) for label, name in registry.variants(backend).items()} == {
        "compile=operator": "directml:compile=operator,path=x.dll",
        "compile=graph": "directml:compile=graph,path=x.dll",
    }
    assert not registry.variants(registry.parse("directml:compile=graph"))
    assert not registry.variants(registry.parse("numpy"))


def test_opening_several_variants_as_one_backend_is_an_error() -> None:
    with pytest.raises(BackendError, match=r"(?s)2 variants.*directml:half=off, directml:half=on"):
        open_backend(registry.parse("directml:half=both"), Limits())


@pytest.mark.parametrize(
    ("off", "on", "message"),
    [
        ("faulty:zeros", NO_FAULT, "only with half=off: 4 of 4 elements of OutputTensor differ"),
        (NO_FAULT, "faulty:rejects", "only with half=on: E_INVALIDARG by CreateOperator"),
        ("faulty:error", "faulty:error", "in every variant: "),
    ],
)
def test_verdict_says_which_variant_is_wrong(
    tmp_path: Path, off: str, on: str, message: str
) -> None:
    verdict, *_ = verdicts(tmp_path, "stated", off=off, on=on)
    assert verdict.status.fails_run
    assert verdict.reason is not None
    assert verdict.reason.message.startswith(message)
    if "only" in message:
        assert verdict.reason.message.endswith("passes")


def test_variants_that_fail_in_different_ways_are_all_named(tmp_path: Path) -> None:
    (verdict,) = verdicts(tmp_path, "stated", off="faulty:zeros", on="faulty:error")
    assert verdict.status is Status.BROKEN
    assert verdict.reason is not None
    assert verdict.reason.kind is ReasonKind.BACKEND_ERROR
    assert verdict.reason.message == (
        "only with half=on: RuntimeError: a mistake in the backend; half=off is failed"
    )
    assert [result.status for result in verdict.judgement.variants.values()] == ["failed", "broken"]


def test_breakdown_is_said_only_of_its_variant(tmp_path: Path) -> None:
    right = {"off,compile=graph": NO_FAULT, "off,compile=operator": NO_FAULT}
    wrong = {"on,compile=graph": "faulty:error", "on,compile=operator": "faulty:zeros"}
    (verdict,) = verdicts(tmp_path, "stated", **wrong, **right)
    assert verdict.reason is not None
    assert verdict.reason.message.startswith("only with half=on,compile=graph: ")
    assert "; half=on,compile=operator is failed; " in verdict.reason.message


def test_different_messages_of_variants_are_all_shown(
    tmp_path: Path,
) -> None:
    (verdict,) = verdicts(tmp_path, "stated", off="faulty:zeros", on="faulty:rejects")
    assert verdict.status is Status.FAILED
    assert verdict.reason is not None
    assert verdict.reason.message == (
        "with half=off: 4 of 4 elements of OutputTensor differ; "
        "with half=on: E_INVALIDARG by CreateOperator, but feature level 3_1 supports it"
    )


def test_differing_bits_within_the_rule_pass_and_are_counted(
    tmp_path: Path,
) -> None:
    planned = load_suite([write(tmp_path, EXP, "exp.yaml")]).plan()
    tested = registry.parse("faulty:zeros")
    # This factor changes last bits only.
    backend = opened(off=NO_FAULT, on="faulty:scaled,by=1.0000001")
    (verdict,) = judged_variants(planned, backend, reference("numpy", tested))
    assert verdict.status is Status.PASSED
    assert not verdict.judgement.variants["half=off"].differing_bits
    assert verdict.judgement.variants["half=on"].differing_bits == {"OutputTensor": 4}
    lines = variant_lines(RunLog(HEADER, (verdict,), None))
    assert lines == [
        "half=off: 1 passed",
        "half=on: 1 passed, other bits within the rule in 1 case (ELEMENT_WISE_EXP 1)",
    ]


def test_each_case_has_one_verdict_in_plan_order(tmp_path: Path) -> None:
    reached = verdicts(tmp_path, off=NO_FAULT, on="faulty:rejects,on=undocumented")
    assert [verdict.case.rpartition("/")[2] for verdict in reached] == [
        "stated",
        "unstated",
        "invalid",
        "undocumented",
    ]
    assert [verdict.status for verdict in reached] == [
        "passed",
        "passed",
        "passed",
        "unsupported",
    ]


def test_log_keeps_the_result_of_each_variant(tmp_path: Path) -> None:
    (verdict,) = verdicts(tmp_path, "stated", off=NO_FAULT, on="faulty:zeros")
    data = json.loads(json.dumps(verdict_data(verdict)))
    assert data["variants"]["half=on"]["reason"] == "wrong values"
    for name in ("run-log", "report"):
        schema = bundled_schema(name)
        inside = {"$schema": schema["$schema"], "$defs": schema["$defs"], "$ref": "#/$defs/verdict"}
        jsonschema.Draft202012Validator(inside).validate(data)
    read = verdict_of(data).judgement.variants
    assert [result.status for result in read.values()] == [Status.PASSED, Status.FAILED]
    assert read["half=on"].differing_bits == {"OutputTensor": 4}


@pytest.mark.parametrize(
    ("statuses", "named"),
    [
        ({"a=1": Status.PASSED, "a=2": Status.FAILED}, "a=2"),
        ({"a=1": Status.FAILED, "a=2": Status.BROKEN}, ""),
        ({"a=1": Status.PASSED, "a=2": Status.UNCHECKED}, ""),
        (
            {
                "a=1,b=1": Status.PASSED,
                "a=1,b=2": Status.FAILED,
                "a=2,b=1": Status.PASSED,
                "a=2,b=2": Status.FAILED,
            },
            "b=2",
        ),
        (
            {
                "a=1,b=1": Status.FAILED,
                "a=1,b=2": Status.PASSED,
                "a=2,b=1": Status.PASSED,
                "a=2,b=2": Status.FAILED,
            },
            "a=1,b=1 and a=2,b=2",
        ),
    ],
)
def test_failing_variants_are_named_briefly(statuses: dict[str, Status], named: str) -> None:
    assert failing_variants({n: VariantResult(status) for n, status in statuses.items()}) == named


def test_failures_of_different_variants_are_different_groups(tmp_path: Path) -> None:
    (first,) = verdicts(tmp_path, "stated", off=NO_FAULT, on="faulty:zeros")
    (second,) = verdicts(tmp_path, "stated", off="faulty:zeros", on=NO_FAULT)
    both = (first, first.of_case(case="tile/mixed/b"), second.of_case(case="tile/mixed/c"))
    (of_tile,) = operator_failures(both)
    assert [group.variants for group in of_tile.groups] == ["half=on", "half=off"]
    lines = shared_lines(RunLog(HEADER, both, None))
    assert lines[0].sentence.startswith("TILE: 2 failures (wrong values) only with half=on")
