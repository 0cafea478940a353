"""Ways in which a vendor, who can sign anything, cheats with certificates.

`dmlconf verify` must notice each from the content.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

import numpy as np

from tests.certification.forging import Forgery

__all__ = ["REPORTED", "VENDOR_CHEATS"]


def _outputs_swapped(random: Random, forgery: Forgery) -> None:
    line, other = random.sample(_with_outputs(forgery), 2)
    line["outputs"], other["outputs"] = other["outputs"], line["outputs"]


def _with_outputs(forgery: Forgery) -> list[dict[str, dict[str, object]]]:
    """Return one line of a case for each different set of outputs."""
    lines = [line for line in forgery.outcomes[1:] if "outputs" in line]
    return list({json.dumps(line["outputs"], sort_keys=True): line for line in lines}.values())


def _wrong_output(random: Random, forgery: Forgery) -> None:
    """Negate an element of an output, or add 1 to an unsigned one."""
    line = random.choice([line for line in forgery.outcomes[1:] if "outputs" in line])
    output = line["outputs"]["OutputTensor"]
    elements = forgery.elements(output)
    place = random.randrange(len(elements))
    elements[place] = elements[place] + 1 if elements.dtype.kind == "u" else -elements[place]
    forgery.store(output, elements)


def _bit_flipped(random: Random, forgery: Forgery) -> None:
    lines = [line for line in forgery.outcomes[1:] if "outputs" in line]
    line = random.choice([line for line in lines if line["case"].startswith("tile")])
    output = line["outputs"]["OutputTensor"]
    content = bytearray(forgery.elements(output).tobytes())
    content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    forgery.store(output, np.frombuffer(bytes(content), np.uint8))


def _digest_invented(random: Random, forgery: Forgery) -> None:
    output = forgery.line("/large")["outputs"]["OutputTensor"]
    output["sha256"] = f"{random.getrandbits(256):064x}"


def _chosen_sample(random: Random, forgery: Forgery) -> None:
    """Choose other or fewer elements for the sample of a large output."""
    output = forgery.line("/large")["outputs"]["OutputTensor"]
    elements = forgery.elements(output)
    choice = random.randrange(3)
    if choice == 0:
        output["places"] = "recording"
    elif choice == 1:
        output["sample"] = random.choice((2, 16, 4095))
        forgery.store(output, elements[: output["sample"]])
    else:
        output["sample"] = 512
        output["places"] = "recording"
        forgery.store(output, elements[:512])


def _small_sampled(random: Random, forgery: Forgery) -> None:
    """Keep a sample of a small output, or call a sample a whole output."""
    line = random.choice([line for line in forgery.outcomes[1:] if "outputs" in line])
    output = line["outputs"]["OutputTensor"]
    if "stored" not in output:
        elements = forgery.elements(output)[:2]
        output |= {"sample": 2, "stored": ""}
        forgery.store(output, elements)
    else:
        output["sizes"] = [4096]
        output["sha256"] = output.pop("stored")
        del output["sample"]


def _sampled_as_recorded(random: Random, forgery: Forgery) -> None:
    """Say that a recording was certified, and keep two elements of each whole output."""
    forgery.predicate["source"] = {
        "kind": "recording",
        "backend": "recording",
        "digest": {"sha256": "0" * 64},
    }
    forgery.log[0]["backend"] = "recording"
    outputs = [o for line in forgery.outcomes[1:] for o in line.get("outputs", {}).values()]
    for output in outputs:
        if "sample" in output:
            continue
        elements = forgery.elements(output)[[0, -1]]
        output |= {"sample": 2, "places": "recording", "stored": ""}
        output["sha256"] = f"{random.getrandbits(256):064x}"
        forgery.store(output, elements)


def _digest_shared(random: Random, forgery: Forgery) -> None:
    """Give an output the digest of an output of another size."""
    lines = {
        line["outputs"]["OutputTensor"]["sha256"]: line for line in _with_whole_outputs(forgery)
    }
    one, other = random.sample(list(lines.values()), 2)
    while one["outputs"]["OutputTensor"]["sizes"] == other["outputs"]["OutputTensor"]["sizes"]:
        other = random.choice(list(lines.values()))
    one["outputs"]["OutputTensor"]["sha256"] = other["outputs"]["OutputTensor"]["sha256"]


def _with_whole_outputs(forgery: Forgery) -> list[Any]:
    """Return the lines of cases without samples."""
    lines = [line for line in forgery.outcomes[1:] if "outputs" in line]
    return [line for line in lines if "sample" not in line["outputs"]["OutputTensor"]]


def _fractional_sizes(random: Random, forgery: Forgery) -> None:
    """Write whole numbers as floats, such as 4.0."""
    output = random.choice(_with_whole_outputs(forgery))["outputs"]["OutputTensor"]
    if random.random() < 0.5:
        output["sizes"] = [float(size) for size in output["sizes"]]
    else:
        output = forgery.line("/large")["outputs"]["OutputTensor"]
        output["sample"] = float(output["sample"])


def _case_removed(random: Random, forgery: Forgery) -> None:
    case = random.choice(forgery.verdicts)["case"]
    of_log, of_outcomes = random.choice(((True, True), (True, False), (False, True)))
    forgery.remove(case, of_log=of_log, of_outcomes=of_outcomes)


def _case_invented(random: Random, forgery: Forgery) -> None:
    name = f"tile/matrix/invented-{random.randrange(99)}"
    if random.random() < 0.5:
        case = random.choice(forgery.outcomes[1:])["case"]
        for line in (*forgery.outcomes[1:], *forgery.verdicts):
            if line["case"] == case:
                line["case"] = name
    else:
        forgery.outcomes.append({**random.choice(forgery.outcomes[1:]), "case": name})


def _case_doubled(random: Random, forgery: Forgery) -> None:
    """List a case twice in the outcomes, or in the log in place of another case."""
    if random.random() < 0.5:
        forgery.outcomes.append(dict(random.choice(forgery.outcomes[1:])))
    else:
        one, other = random.sample(range(1, len(forgery.log) - 1), 2)
        forgery.log[one] = dict(forgery.log[other])
        forgery.count_again()


def _status_edited(random: Random, forgery: Forgery) -> None:
    line = random.choice(forgery.verdicts)
    kinds = {
        "unsupported": "data type",
        "waived": "known fault of DirectML",
        "unchecked": "any value permitted",
        "failed": "wrong values",
        "not run": "interrupted",
    }
    line["status"] = random.choice(list(kinds))
    line["reason"] = {
        "kind": kinds[line["status"]],
        "message": "so it is",
        "differences": [],
        "diagnostics": "",
    }
    forgery.count_again()


def _called_unsupported(random: Random, forgery: Forgery) -> None:
    """Call a case unsupported, and leave out its outcome."""
    line = random.choice(forgery.verdicts)
    forgery.remove(line["case"], of_log=False)
    line |= {"status": "unsupported", "expectation": None, "figures": {}}
    line["reason"] = {
        "kind": random.choice(("data type", "feature level", "not documented as supported")),
        "message": "the backend lacks it",
        "differences": [],
        "diagnostics": "",
    }
    forgery.count_again()


def _type_called_missing(random: Random, forgery: Forgery) -> None:
    """Say that the device lacks a data type that its level demands, and drop its outcomes."""
    name = random.choice(("FLOAT32", "FLOAT16", "UINT32", "INT8"))
    forgery.predicate["capabilities"]["data_types"].remove(name)
    for line in forgery.verdicts:
        of_type = name in line["case"] or (name == "FLOAT32" and "DataType" not in line["case"])
        if of_type and "invalid" not in line["case"]:
            forgery.remove(line["case"], of_log=False)
            line |= {"status": "unsupported", "expectation": None, "figures": {}}
            line["reason"] = {
                "kind": "data type",
                "message": f"the backend lacks {name}",
                "differences": [],
                "diagnostics": "",
            }
    forgery.count_again()


def _lower_level(random: Random, forgery: Forgery) -> None:
    forgery.predicate["capabilities"]["feature_level"] = random.choice(("1_0", "5_0", "9_9"))


def _other_profile(random: Random, forgery: Forgery) -> None:
    profile = forgery.predicate["profile"]
    if random.random() < 0.5:
        profile["name"] = random.choice(
            ("1_0", "6_4", "../small.yaml", "small.yaml", "small+model")
        )
    else:
        profile["digest"]["sha256"] = "0" * 64


def _other_suite(random: Random, forgery: Forgery) -> None:
    key, field = random.choice((("suite", "suite_digest"), ("catalogue", "catalogue_digest")))
    forgery.predicate[key]["sha256"] = forgery.log[0][field] = f"{random.getrandbits(256):064x}"


def _replayed(random: Random, forgery: Forgery) -> None:
    challenge = random.randrange(1, 1 << 64)
    forgery.predicate["challenge"] = str(challenge)
    forgery.log[0]["options"]["challenge"] = challenge


def _other_inputs(random: Random, forgery: Forgery) -> None:
    """Give an outcome the digest of another desc or of other inputs."""
    random.choice(forgery.outcomes[1:])["digest"] = f"{random.getrandbits(256):064x}"


def _other_environment(random: Random, forgery: Forgery) -> None:
    environment = forgery.predicate["environment"]
    choice = random.randrange(8)
    if choice == 0:
        environment["adapter"] = "A better one"
    elif choice == 5:
        del environment[random.choice(list(environment))]
    elif choice == 6:
        environment["details"]["recorded"] = [1]
        for record in (environment, forgery.log[0]["environment"]):
            record["backend"] = "recording"
    elif choice == 7:
        forgery.log[0]["options"]["profile"] = "6_4"
    elif choice == 1:
        forgery.log[0]["environment"]["driver"] = "9.9"
    elif choice == 2:
        for record in (environment, forgery.log[0]["environment"]):
            record["backend"] = "directml"
    elif choice == 3:
        forgery.log[0]["started"] = "2099-01-01T00:00:00+00:00"
    else:
        forgery.log[-1]["finished"] = "2099-01-01T00:00:00+00:00"


def _broke_down(random: Random, forgery: Forgery) -> None:
    line = random.choice([line for line in forgery.outcomes[1:] if "outputs" in line])
    choice = random.randrange(3)
    if choice == 0:
        del line["outputs"]
        line["breakdown"] = {"kind": "crash", "message": "it crashed"}
    elif choice == 1:
        del line["outputs"]
        line["rejection"] = {"stage": "CreateOperator", "hresult": "E_INVALIDARG"}
    else:
        line["faults"] = [{"kind": "not deterministic", "message": "now so, now so"}]


def _other_rejection(random: Random, forgery: Forgery) -> None:
    """Say that an invalid desc was refused by another call, with another HRESULT."""
    line = forgery.line("/invalid")
    line["rejection"] = {"stage": "Execute", "hresult": random.choice(("S_OK", "E_OUTOFMEMORY"))}


def _excused_by_a_limit(random: Random, forgery: Forgery) -> None:
    """Make an output wrong, and add a substrate whose limits excuse everything."""
    _wrong_output(random, forgery)
    forgery.others["substrate.yaml"] = _EXCUSE


_EXCUSE: Final = b"""
substrate: Anything
limits:
  - name: anything
    reason: Because.
    stage: Execute
    hresult: S_OK
    operators: any
    data_types: any
"""


def _badly_waived(random: Random, forgery: Forgery) -> None:
    """Make an output wrong, and add a waiver that does not apply."""
    output = forgery.line("/stated")["outputs"]["OutputTensor"]
    forgery.store(output, forgery.elements(output) + 1)
    fields = {
        "until": "2099-12-31",
        "cases": "tile/matrix/stated",
        "failure": "wrong values",
        "elements": "4",
        "adapters": "*",
    }
    wrong = {
        "until": "2025-12-31",
        "cases": "tile/*",
        "failure": "crash",
        "elements": "3",
        "adapters": "Contoso*",
    }
    name = random.choice(list(wrong))
    fields[name] = wrong[name]
    text = _WAIVERS.format(**fields)
    if name == "failure":
        text = text.replace("    bound: {elements: 4}\n", "")
    forgery.others["waivers.yaml"] = text.encode()
    line = next(line for line in forgery.verdicts if line["case"].endswith("/stated"))
    line["status"] = "waived"
    line["reason"] = {
        "kind": "waiver",
        "message": "so it is",
        "differences": [],
        "diagnostics": "",
    }
    forgery.count_again()


_WAIVERS: Final = """
format: 1
waivers:
  - name: wrong
    reason: It is wrong.
    link: https://bugs.example.com/1
    until: {until}
    cases: ["{cases}"]
    failure: {failure}
    bound: {{elements: {elements}}}
    devices: {{adapters: ["{adapters}"]}}
"""


def _order_changed(random: Random, forgery: Forgery) -> None:
    lines = forgery.verdicts
    random.shuffle(lines)
    if lines == forgery.verdicts:
        lines = lines[::-1]
    forgery.log[1:-1] = lines
    forgery.count_again()


def _without_footer(random: Random, forgery: Forgery) -> None:
    """Replace the log's footer by its last verdict."""
    forgery.log[-1] = dict(forgery.log[-2])


def _all_waived(random: Random, forgery: Forgery) -> None:
    """Make every whole output wrong, and add a waiver that accepts any error."""
    for line in forgery.outcomes[1:]:
        for output in line.get("outputs", {}).values():
            elements = forgery.elements(output)
            if "sample" not in output:
                forgery.store(output, elements + np.ones(1, elements.dtype))
    bound = random.choice(("{elements: 1000000000}", "{ulp: 1000000000}"))
    text = _WAIVERS.format(
        until="2099-12-31", cases="*", failure="wrong values", elements=4, adapters="*"
    )
    text = text.replace("{elements: 4}", bound) + "    intermittent: true\n"
    forgery.others["waivers.yaml"] = text.encode()
    for line in forgery.verdicts:
        if not line["case"].endswith(("/invalid", "/large")):
            line["status"] = "waived"
            line["reason"] = {
                "kind": "waiver",
                "message": "wrong: so it is",
                "differences": [],
                "diagnostics": "",
            }
    forgery.count_again()


def _other_backend(random: Random, forgery: Forgery) -> None:
    """Name an unknown backend, or DirectML without an adapter or a driver."""
    changes: dict[str, Any] = random.choice(
        (
            {"backend": "contoso"},
            {"backend": "directml", "driver": None},
            {"backend": "directml", "adapter": "", "driver": "1"},
        )
    )
    details = {"directml_sha256": "0" * 64, "feature_level": "6_4"}
    if changes["backend"] == "directml":
        changes |= {"version": "1.15.4", "details": details}
    for record in (forgery.predicate["environment"], forgery.log[0]["environment"]):
        record |= changes
    forgery.predicate["source"]["backend"] = forgery.log[0]["backend"] = changes["backend"]


def _deep_environment(random: Random, forgery: Forgery) -> None:
    """Nest the environment's details deeply in the statement, the log or both."""
    value: Any = "x"
    for _ in range(random.choice((400, 700))):
        value = [value] if random.random() < 0.5 else {"a": value}
    records = [forgery.predicate["environment"], forgery.log[0]["environment"]]
    for record in random.choice((records, records[:1], records[1:])):
        record["details"] = {"deep": value}


VENDOR_CHEATS: Final[Mapping[str, Callable[[Random, Forgery], None]]] = {
    "swapped outputs": _outputs_swapped,
    "a wrong element": _wrong_output,
    "a wrong bit": _bit_flipped,
    "an invented digest of a large output": _digest_invented,
    "a chosen sample": _chosen_sample,
    "a sample of a small output": _small_sampled,
    "a recording's sample of a small output": _sampled_as_recorded,
    "a digest of two outputs": _digest_shared,
    "sizes that are no whole numbers": _fractional_sizes,
    "a removed case": _case_removed,
    "an invented case": _case_invented,
    "a case twice": _case_doubled,
    "an edited status": _status_edited,
    "a case said to be unsupported": _called_unsupported,
    "a data type that the device is said to lack": _type_called_missing,
    "a lower feature level": _lower_level,
    "another profile": _other_profile,
    "another suite or catalogue": _other_suite,
    "a replayed challenge": _replayed,
    "other inputs": _other_inputs,
    "another environment": _other_environment,
    "a breakdown, a rejection or faults": _broke_down,
    "another rejection": _other_rejection,
    "an excuse of one's own": _excused_by_a_limit,
    "a waiver that does not fit": _badly_waived,
    "another order": _order_changed,
    "no footer": _without_footer,
    "a waiver for everything": _all_waived,
    "another backend": _other_backend,
    "a deep environment": _deep_environment,
}


def _odd_dates(random: Random, forgery: Forgery) -> None:
    """Let a run begin in 1970 or 1999, and last up to 25 years."""
    began = datetime(random.choice((1970, 1999)), 1, 1, tzinfo=UTC)
    lasted = timedelta(days=random.choice((1, 365, 9000)))
    forgery.log[0]["started"] = began.isoformat()
    forgery.log[-1]["finished"] = (began + lasted).isoformat()


REPORTED: Final[Mapping[str, tuple[Callable[[Random, Forgery], None], str]]] = {
    "odd dates": (_odd_dates, "the run ended on "),
}
"""Cheats that the verifier cannot prove, and the note that each must get."""
