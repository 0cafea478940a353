"""The outcomes in a certificate, one for each case that ran; equal outputs are stored once.

Of an output of 64 KiB or more, a sample and the digest of all elements are stored. The sample has
the first and the last element, and others that the challenge, the case, the output's name and the
digest choose: nobody knows them before all elements are computed. A recording's sample is stored
as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

import numpy as np

from dmlconf.backends.protocol import (
    Breakdown,
    BreakdownKind,
    Declined,
    Fault,
    FaultKind,
    Outcome,
    Outputs,
    Rejection,
)
from dmlconf.backends.recording.digest import case_digest, outputs_problem
from dmlconf.backends.recording.model import SAMPLE as RECORDED_SAMPLE
from dmlconf.backends.recording.model import SAMPLED_BYTES as RECORDED_SAMPLED_BYTES
from dmlconf.backends.recording.model import sample_seed
from dmlconf.cases.model import Case
from dmlconf.certification.errors import RefusedError
from dmlconf.certification.json_text import canonical_json, parsed_json
from dmlconf.documents.problems import printable
from dmlconf.documents.schema import Checker, bundled_schema, first_error
from dmlconf.tensors.datatypes import Array, DataType
from dmlconf.tensors.sample import Sample, little_endian, sample_indices, sample_of, with_one_nan

__all__ = [
    "SAMPLED_BYTES",
    "StoredOutcome",
    "StoredOutcomes",
    "packed",
    "read_outcomes",
    "restored",
    "stored_outcome",
]

SAMPLED_BYTES: Final = 1 << 16
"""The fewest bytes of an output that is stored as a sample, unless a recording sampled it."""

SAMPLE: Final = 4096
"""Elements of a sample. About 1 in 60 samples (0.999^4096) misses an error in 0.1% of an output."""

_FORMAT: Final = 1
_FORMS: Final = ("outputs", "rejection", "breakdown", "declined")
"""The keys that say the kind of outcome; each line has one of them."""
_FIRST_CASE: Final = 2
"""The number of the first line of outcomes.jsonl after the head."""
_LONGEST_LINE_BYTES: Final = 1 << 20
_TYPES: Final = {t.dtype: str(t) for t in DataType if t.bits >= 8}  # INT4 is stored as INT8.
_DTYPES: Final = {name: dtype.newbyteorder("<") for dtype, name in _TYPES.items()}


@dataclass(frozen=True, slots=True)
class StoredOutcome:
    """The stored outcome of a case.

    Attributes:
        line: the case's line of outcomes.jsonl.
        contents: the stored elements, by their SHA-256.
    """

    line: Mapping[str, Any]
    contents: Mapping[str, bytes]


def stored_outcome(case: Case, outcome: Outcome, challenge: int | None) -> StoredOutcome:
    """Return the outcome of a case as a certificate stores it.

    Outputs other than those of the desc are stored as a breakdown.

    Args:
        outcome: the backend's outcome, without excused faults.
    """
    digest = case_digest(case)
    line: dict[str, Any] = {"case": case.identifier, "digest": digest}
    if isinstance(outcome, Outputs):
        problem = outputs_problem(case, outcome)
        if problem is not None:
            outcome = Breakdown(BreakdownKind.ERROR, f"other outputs than the desc has: {problem}")
    if isinstance(outcome, Declined):
        line["declined"] = {"reason": outcome.reason}
        return StoredOutcome(line, {})
    if isinstance(outcome, Breakdown):
        line["breakdown"] = {"kind": str(outcome.kind), "message": outcome.message}
        return StoredOutcome(line, {})
    if isinstance(outcome, Rejection):
        line["rejection"] = {"stage": outcome.stage, "hresult": outcome.hresult}
        if outcome.constraints:
            line["rejection"]["constraints"] = list(outcome.constraints)
        return StoredOutcome(line, {})
    contents: dict[str, bytes] = {}
    known: dict[str, Array | Sample] = {**outcome.samples, **outcome.arrays}
    line["outputs"] = {
        name: _output(output, f"{_seed(challenge)}/{digest}/{name}", contents)
        for name, output in sorted(known.items())
    }
    if outcome.faults:
        line["faults"] = [_fault(fault) for fault in outcome.faults]
    return StoredOutcome(line, contents)


def _seed(challenge: int | None) -> str:
    return "" if challenge is None else str(challenge)


def _output(output: Array | Sample, seed: str, contents: dict[str, bytes]) -> dict[str, Any]:
    data: dict[str, Any] = {"type": _TYPES[output.dtype], "sizes": list(output.shape)}
    if isinstance(output, Sample):
        # Elements that the recording chose prove less: verification adds a note.
        values, extra = output.values, {"places": "recording"}
        data["sha256"] = output.digest
    else:
        output = with_one_nan(output)
        whole = little_endian(output)
        data["sha256"] = sha256(whole).hexdigest()
        if len(whole) < SAMPLED_BYTES:
            contents[data["sha256"]] = whole
            return data
        values, extra = sample_of(output, f"{seed}/{data['sha256']}", SAMPLE).values, {}
    stored = little_endian(values)
    data |= {"sample": len(values), "stored": sha256(stored).hexdigest(), **extra}
    contents[data["stored"]] = stored
    return data


def _fault(fault: Fault) -> dict[str, str]:
    data = {"kind": str(fault.kind), "message": fault.message}
    return data | ({"output": fault.output} if fault.output else {})


def restored(line: Any, contents: Mapping[str, bytes]) -> StoredOutcome:
    """Return a stored outcome from its line and contents, after checking them.

    Raises:
        RefusedError: the line has no known form, or the elements are not those of its outputs.
    """
    _check(_FIRST_CASE, line)
    for output in _outputs_of(line):
        stored = output.get("stored", output["sha256"])
        content = contents.get(stored, b"")
        if len(content) != _stored_size(_FIRST_CASE, output):
            raise RefusedError(f"an output of {line['case']} has another length")
        if sha256(content).hexdigest() != stored:
            raise RefusedError(f"an output of {line['case']} was changed")
    return StoredOutcome(line, contents)


def packed(everything: Iterator[StoredOutcome]) -> tuple[bytes, bytes]:
    """Return outcomes.jsonl and outputs.bin for stored outcomes in the order of the plan."""
    lines, parts, known = [canonical_json({"format": _FORMAT})], [], set()
    for each in everything:
        lines.append(canonical_json(each.line))
        for output in _outputs_of(each.line):
            stored = output.get("stored", output["sha256"])
            if stored not in known:
                known.add(stored)
                parts.append(each.contents[stored])
    return b"\n".join(lines) + b"\n", b"".join(parts)


def _outputs_of(line: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the outputs of a line in the order of their names, as in outputs.bin."""
    outputs = line.get("outputs", {})
    for name in sorted(outputs):
        yield outputs[name]


class StoredOutcomes:
    """The outcomes of a certificate, each decoded on request.

    Attributes:
        lines: the lines, by the case's identifier.
        changed: identifiers of the cases whose elements in outputs.bin were changed.
    """

    def __init__(
        self,
        lines: Mapping[str, Mapping[str, Any]],
        offsets: Mapping[str, int],
        outputs: bytes,
        changed: tuple[str, ...],
    ) -> None:
        self.lines = lines
        self.changed = changed
        self._offsets = offsets
        self._outputs = outputs

    @property
    def recording_samples(self) -> int:
        """The number of outputs with a sample whose elements a recording chose."""
        outputs = (output for line in self.lines.values() for output in _outputs_of(line))
        return sum("places" in output for output in outputs)

    def outcome(self, case: Case, challenge: int | None, *, replayed: bool) -> Outcome | str:
        """Return the outcome of a case, or why it is unknown.

        Args:
            replayed: whether a recording was certified.
        """
        line = self.lines.get(case.identifier)
        if line is None:
            return "the certificate has no outcome for this case"
        if line["digest"] != case_digest(case):
            return "the certificate's outcome is for another desc or other inputs"
        if "declined" in line:
            return Declined(line["declined"]["reason"])
        if "breakdown" in line:
            data = line["breakdown"]
            return Breakdown(BreakdownKind(data["kind"]), data["message"])
        if "rejection" in line:
            data = line["rejection"]
            return Rejection(data["stage"], data["hresult"], tuple(data.get("constraints", ())))
        forms = {
            name: (_TYPES[tensor.DataType.dtype], list(tensor.Sizes))
            for name, tensor in case.outputs().items()
        }
        if {name: (o["type"], o["sizes"]) for name, o in line["outputs"].items()} != forms:
            return "the certificate's outputs are not those of the desc"
        arrays, samples = {}, {}
        for name, output in line["outputs"].items():
            if "sample" not in output:
                arrays[name] = self._array(output, output["sizes"])
                continue
            if "places" in output and not replayed:
                return f"the sample of {name} has other elements than the challenge asks for"
            seed = f"{_seed(challenge)}/{line['digest']}/{name}/{output['sha256']}"
            if replayed and "places" in output:
                seed = sample_seed(line["digest"], name)
            samples[name] = self._sample(output, seed)
        faults = tuple(
            Fault(FaultKind(fault["kind"]), fault["message"], fault.get("output", ""))
            for fault in line.get("faults", ())
        )
        return Outputs(arrays, faults=faults, samples=samples)

    def _sample(self, output: Mapping[str, Any], seed: str) -> Sample:
        count = output["sample"]
        values = self._array(output, [count])
        indices = sample_indices(math.prod(output["sizes"]), seed, count)
        return Sample(values.dtype, tuple(output["sizes"]), output["sha256"], indices, values)

    def _array(self, output: Mapping[str, Any], sizes: list[int]) -> Array:
        dtype = _DTYPES[output["type"]]
        offset = self._offsets[output.get("stored", output["sha256"])]
        stored = np.frombuffer(self._outputs, dtype, math.prod(sizes), offset)
        return stored.reshape(sizes).astype(dtype.newbyteorder("="), copy=False)


def read_outcomes(text: bytes, outputs: bytes, *, checked: bool = False) -> StoredOutcomes:
    """Read outcomes.jsonl and outputs.bin.

    Args:
        checked: whether the digests and the forms of lines have been checked before.

    Raises:
        RefusedError: the files are malformed; if only elements were changed,
            `StoredOutcomes.changed` names their cases.
    """
    lines: dict[str, Mapping[str, Any]] = {}
    offsets: dict[str, int] = {}
    sizes: dict[str, int] = {}
    wrong: set[str] = set()
    end = 0
    for number, data in _lines(text, checked=checked):
        if data["case"] in lines:
            raise RefusedError(printable(f"outcomes.jsonl:{number}: {data['case']} is there twice"))
        lines[data["case"]] = data
        for output in _outputs_of(data):
            stored, size = output.get("stored", output["sha256"]), _stored_size(number, output)
            if sizes.setdefault(stored, size) != size:
                raise RefusedError(
                    f"outcomes.jsonl:{number}: an output of {size:,} bytes has the digest of one "
                    f"of {sizes[stored]:,} bytes"
                )
            if stored in offsets:
                continue
            offsets[stored] = end
            content = outputs[end : end + size]
            end += size
            if end > len(outputs):
                raise RefusedError("outputs.bin is shorter than outcomes.jsonl says")
            if not checked and sha256(content).hexdigest() != stored:
                wrong.add(stored)
    if end != len(outputs):
        raise RefusedError(f"outputs.bin has {len(outputs):,} bytes; outcomes.jsonl uses {end:,}")
    changed = tuple(
        case
        for case, data in lines.items()
        if any(output.get("stored", output["sha256"]) in wrong for output in _outputs_of(data))
    )
    return StoredOutcomes(lines, offsets, outputs, changed)


def _stored_size(number: int, output: Mapping[str, Any]) -> int:
    """Return how many bytes an output has in outputs.bin; refuse it if it is sampled wrongly."""
    item = _DTYPES[output["type"]].itemsize
    elements = int(math.prod(output["sizes"]))
    if "sample" not in output:
        if elements * item >= SAMPLED_BYTES:
            raise RefusedError(f"outcomes.jsonl:{number}: an output this large must be a sample")
        return elements * item
    count, size, least = output["sample"], SAMPLE, SAMPLED_BYTES
    if "places" in output:
        size, least = RECORDED_SAMPLE, RECORDED_SAMPLED_BYTES
    if count != size or elements * item < least:
        raise RefusedError(
            f"outcomes.jsonl:{number}: a sample has {size:,} elements, and is of an output of at "
            f"least {least:,} bytes"
        )
    return size * item


def _lines(text: bytes, *, checked: bool) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the number and the data of each line except the first, which is the head."""
    start, number = 0, 0
    while start < len(text):
        end = text.find(b"\n", start, start + _LONGEST_LINE_BYTES)
        number += 1
        if end < 0:
            raise RefusedError(f"outcomes.jsonl:{number}: a line is unterminated or too long")
        data = parsed_json(text[start:end], f"outcomes.jsonl:{number}", whole=True)
        start = end + 1
        if not checked:
            _check(number, data)
        if number > 1:
            yield number, data
    if number == 0:
        raise RefusedError("outcomes.jsonl is empty")


def _check(number: int, data: Any) -> None:
    checker = _CHECKERS["head" if number == 1 else "line"]
    if not checker.is_valid(data):
        message = f"outcomes.jsonl:{number}: {first_error(checker, data)}"
        raise RefusedError(printable(message))
    if number > 1:
        forms = [key for key in _FORMS if key in data]
        alone = "faults" not in data or forms == ["outputs"]
        samples = all(("sample" in o) == ("stored" in o) for o in _outputs_of(data))
        if len(forms) != 1 or not alone or not samples:
            raise RefusedError(f"outcomes.jsonl:{number}: not one outcome of a known form")


def _checker(definition: str) -> Checker:
    schema = bundled_schema("certificate")
    return Checker({"$defs": schema["$defs"], "$ref": f"#/$defs/{definition}"})


class _Checkers(dict[str, Checker]):
    """Checkers created when first needed."""

    def __missing__(self, definition: str) -> Checker:
        self[definition] = _checker(definition)
        return self[definition]


_CHECKERS: Final = _Checkers()
