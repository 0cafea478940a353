"""Write failing cases to files, with inputs and expected, permitted and actual outputs."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from dmlconf.backends.protocol import Outputs
from dmlconf.cases.model import Case, ExpectedOutputs, ExpectedRejection
from dmlconf.cases.writing.export import array_file, export_case, exported_name
from dmlconf.engine.session import OpenBackend
from dmlconf.judging.judge import Against, expectation_of
from dmlconf.permitted.allowance import CaseAllowances
from dmlconf.precision.room import permitted_ends
from dmlconf.tensors.datatypes import Array

__all__ = ["dump_cases"]


def dump_cases(
    folder: Path, cases: Iterable[Case], backend: OpenBackend, against: Against
) -> list[Path]:
    """Run cases again, and write each to a case file with a folder of NumPy files.

    Inputs are in `TENSOR.input.npy`, unless the case must be rejected, and constants of graphs in
    `NAME.constant.npy`. Known outputs are in `TENSOR.expected.npy` and `TENSOR.actual.npy`, and
    permitted ones from `TENSOR.lowest.npy` to `TENSOR.highest.npy`.

    Returns:
        the case files.

    Raises:
        OSError: a file cannot be written.
        BackendError: a process could not be started, or a recording cannot be read.
    """
    folder.mkdir(parents=True, exist_ok=True)
    half = backend.capabilities.half_precision
    paths: list[Path] = []
    for case, outcome in backend.execute(iter(list(cases))):
        path = _free_path(folder, exported_name(case.identifier), paths)
        data = path.with_suffix("")
        data.mkdir(exist_ok=True)
        expectation = expectation_of(case, against)
        inputs = {} if isinstance(expectation, ExpectedRejection) else case.inputs()
        export_case(path, case, expectation, inputs)
        if isinstance(expectation, ExpectedOutputs):
            _write_expected(data, case, expectation, half)
        if isinstance(outcome, Outputs):
            for name, array in outcome.arrays.items():
                array_file(data, name, "actual", array)
        paths.append(path)
    return paths


def _free_path(folder: Path, name: str, taken: list[Path]) -> Path:
    """Return a path that no earlier case has, since shortened names may be equal."""
    path, number = folder / f"{name}.yaml", 1
    while path in taken:
        number += 1
        path = folder / f"{name}-{number}.yaml"
    return path


def _write_expected(folder: Path, case: Case, expectation: ExpectedOutputs, half: bool) -> None:
    allowances = CaseAllowances(case, half_precision=half)
    for name, expected in expectation.outputs.items():
        array_file(folder, name, "expected", expected)
        # The reference may be unable to compute what a rule needs, such as very large results.
        with suppress(ValueError, LookupError):
            lowest, highest = _allowed(case, name, expected, allowances)
            array_file(folder, name, "lowest", lowest)
            array_file(folder, name, "highest", highest)


def _allowed(
    case: Case, name: str, expected: Array, allowances: CaseAllowances
) -> tuple[Array, Array]:
    rule = case.narrower_rule(name) or case.rule(name)
    lowest, highest = permitted_ends(expected.ravel(), rule, allowances.of(name))
    return lowest.reshape(expected.shape), highest.reshape(expected.shape)
