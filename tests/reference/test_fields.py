"""`of_fields` makes a function of a desc take the desc's fields as arguments.

The tested code is in `dmlconf/reference/fields.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature

import pytest

from dmlconf.reference.fields import of_fields


@dataclass(frozen=True, slots=True)
class ScaleDesc:
    Input: float
    Factor: float
    Bias: float | None


@of_fields(ScaleDesc)
def scale(desc: ScaleDesc) -> float:
    """Return the scaled input."""
    return desc.Input * desc.Factor + (desc.Bias or 0.0)


def test_fields_are_taken_by_name_or_position() -> None:
    assert scale(Input=2.0, Factor=3.0, Bias=1.0) == scale(2.0, 3.0, Bias=1.0) == 7.0


def test_signature_has_the_fields_and_the_result_of_the_function() -> None:
    assert list(signature(scale).parameters) == ["Input", "Factor", "Bias"]
    assert signature(scale).return_annotation == "float"


def test_name_and_docstring_of_the_function_are_kept() -> None:
    assert (scale.__name__, scale.__doc__) == ("scale", "Return the scaled input.")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"Input": 2.0}, "missing .*'Factor' and 'Bias'"),
        ({"Input": 2.0, "Factor": 3.0, "Other": 1.0}, "unexpected .*'Other'"),
    ],
)
def test_missing_and_unknown_fields_are_refused(fields: dict[str, float], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        scale(**fields)
