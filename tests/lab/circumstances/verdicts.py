"""Print the verdict on a case with each saboteur: a fault of `saboteur.dll`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from dmlconf.backends import registry
from dmlconf.backends.circumstances import Circumstance, Exercise
from dmlconf.cases.loading.loader import load_suite, valid_case
from dmlconf.engine.session import in_process, reference
from dmlconf.excuses.substrate import read_substrate
from dmlconf.judging.conclusion import Conclusion, JudgeOptions, verdict_of


def main() -> None:
    """Print a line of JSON for each saboteur; the arguments are a case file and the saboteurs."""
    file, *saboteurs = sys.argv[1:]
    substrate = read_substrate(Path(os.environ["DMLCONF_SUBSTRATE"]))
    [planned] = load_suite([Path(file)]).plan()
    exercise = Exercise(valid_case(planned), tuple(Circumstance))
    name = registry.parse("directml:path=saboteur.dll")
    conclusion = Conclusion(reference("numpy", name), options=JudgeOptions(substrate))
    for saboteur in saboteurs:
        os.environ["DMLCONF_SABOTEUR"] = saboteur
        backend = in_process(name, registry.create(name))
        verdict = verdict_of(exercise, backend.execute, conclusion)
        backend.close()
        result = verdict.status, verdict.circumstance, dict(verdict.judgement.circumstances)
        print(json.dumps([saboteur, *result]), flush=True)


if __name__ == "__main__":
    main()
