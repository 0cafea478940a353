"""An application of dmlconf: `run_cases.py CASES` prints the bits of the outputs as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from dmlconf.backends.directml.backend import create
from dmlconf.backends.protocol import Outputs
from dmlconf.cases.loading.loader import load_suite, valid_case


def main() -> None:
    cases = [valid_case(planned) for planned in load_suite([Path(sys.argv[1])]).plan()]
    backend = create("")
    results = {}
    for case, outcome in zip(cases, backend.run(cases), strict=True):
        assert isinstance(outcome, Outputs), outcome
        arrays = outcome.arrays.items()
        results[case.identifier] = {name: array.tobytes().hex() for name, array in arrays}
    backend.close()
    print(json.dumps(results))


main()
