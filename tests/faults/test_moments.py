"""A known fault of ADAM_OPTIMIZER is waived: a moment overwrites the parameters before their use.

The tested code is in `dmlconf/faults/moments.py`, `dmlconf/judging/circumstances.py` and
`schemas/known-faults.yaml`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dmlconf.backends.circumstances import Circumstance, Dispatch, Exercised
from dmlconf.backends.protocol import Environment, Outputs
from dmlconf.backends.registry import parse
from dmlconf.cases.model import Case
from dmlconf.engine.session import reference
from dmlconf.excuses.known_fault_file import known_faults
from dmlconf.judging.circumstances import judge_circumstances
from dmlconf.judging.judge import judge
from dmlconf.reference.evaluation import evaluate
from dmlconf.verdicts.verdict import Status
from tests.faults.user_cases import case_of
from tests.graphs.suites import graph_case

PARAMETERS = "Sizes: [1, 1, 1, 1, 2], DataType: FLOAT32"
STEP = "Sizes: [1], DataType: UINT32"
ADAM = "LearningRate: 0.5, Beta1: 0.5, Beta2: 0.75, Epsilon: 0.125"
ADAM_OPERATOR = (
    f"{{InputParametersTensor: {{{PARAMETERS}, values: [1, -1]}}, "
    f"InputFirstMomentTensor: {{{PARAMETERS}, values: [2, 3]}}, "
    f"InputSecondMomentTensor: {{{PARAMETERS}, values: [1, 4]}}, "
    f"GradientTensor: {{{PARAMETERS}, values: [0, 1]}}, "
    f"TrainingStepTensor: {{{STEP}, values: [1]}}, OutputParametersTensor: {{{PARAMETERS}}}, "
    f"OutputFirstMomentTensor: {{{PARAMETERS}}}, OutputSecondMomentTensor: {{{PARAMETERS}}}, "
    f"{ADAM}}}"
)
ADAM_GRAPH = f"""
inputs:
  parameters: {{{PARAMETERS}, values: [1, -1]}}
  first: {{{PARAMETERS}, values: [2, 3]}}
  second: {{{PARAMETERS}, values: [1, 4]}}
  gradient: {{{PARAMETERS}, values: [0, 1]}}
  step: {{{STEP}, values: [1]}}
nodes:
  adam: {{operator: ADAM_OPTIMIZER,
          desc: {{InputParametersTensor: parameters, InputFirstMomentTensor: first,
                 InputSecondMomentTensor: second, GradientTensor: gradient,
                 TrainingStepTensor: step, OutputParametersTensor: {{}},
                 OutputFirstMomentTensor: {{}}, OutputSecondMomentTensor: {{}}, {ADAM}}}}}
outputs:
  p: adam.OutputParametersTensor
  m: adam.OutputFirstMomentTensor
  v: adam.OutputSecondMomentTensor
"""


@pytest.mark.parametrize("is_graph", [False, True])
@pytest.mark.parametrize("where", ["in the dispatch", "in the case", "nowhere"])
def test_aliased_parameters_are_waived_if_a_moment_overwrites_them(
    where: str, is_graph: bool, tmp_path: Path
) -> None:
    """DirectML writes the first moment before it reads the parameters.

    A dispatch whose `in_place` is None shares the buffers that the case shares.
    """
    if is_graph:
        case: Case = graph_case(tmp_path, ADAM_GRAPH)
        output, moment, parameters = "p", "m", "parameters"
    else:
        case = case_of(tmp_path, "ADAM_OPTIMIZER", ADAM_OPERATOR)
        output, moment = "OutputParametersTensor", "OutputFirstMomentTensor"
        parameters = "InputParametersTensor"
    shared = {moment: parameters}
    if where == "in the case":
        case = replace(case, in_place=shared)
    right = evaluate(case)
    moved = right[output] - case.inputs()[parameters]
    dispatched = {"in the dispatch": shared, "in the case": None, "nowhere": {}}
    wrong = {**right, output: right[moment] + moved}
    dispatch = Dispatch(0, wrong, in_place=dispatched[where])
    expected = reference("numpy", parse("directml"))
    steps = judge_circumstances(
        case,
        judge(case, Outputs(right), expected),
        {Circumstance.ALIASED: Exercised((dispatch,))},
        lambda case, outcome: judge(case, outcome, expected),
        known_faults(Environment("directml", "1.15.4", "an adapter", "1.0")).waive,
    )
    with pytest.raises(StopIteration) as end:
        next(steps)
    verdict = end.value.value
    named = where != "nowhere"
    under = {"aliased": "waived"} if named else {"aliased": "failed"}
    assert verdict.judgement.circumstances == under
    assert verdict.status is (Status.PASSED if named else Status.FAILED)
