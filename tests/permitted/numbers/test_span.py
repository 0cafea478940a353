"""A `Span` contains its values, results computed from them, and their stores in FLOAT16.

The tested code is in `dmlconf/permitted/numbers/span.py` and `dmlconf/permitted/numbers/half.py`.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlconf.permitted.numbers.half import STORES
from dmlconf.permitted.numbers.span import Span

ENDS = st.tuples(st.integers(-100, 100), st.integers(-100, 100)).map(sorted)


@given(ENDS, ENDS, st.data())
def test_results_of_spans_contain_the_results_of_their_values(
    first: list[int], second: list[int], data: st.DataObject
) -> None:
    a, b = (Span(np.array([float(low)]), np.array([float(high)])) for low, high in (first, second))
    x, y = (data.draw(st.floats(low, high)) for low, high in (first, second))
    results = [(a + b, x + y), (a - b, x - y), (a * b, x * y), (a.square(), x * x)]
    if second[0] > 0 or second[1] < 0:
        results.append((a / b, x / y))
    for span, value in results:
        assert span.least[0] <= value <= span.greatest[0]
    assert a.square().least[0] >= 0


@np.errstate(all="ignore")
@pytest.mark.parametrize("value", [0.1, -0.1, 2048.5, 2051.0, -2051.0, 65503.9, 65520.0, 7e4, -1e6])
def test_stored_span_holds_the_value_and_its_stored_forms(value: float) -> None:
    values = np.array([value])
    stored = Span.of(values).held()
    forms = [values, *(np.asarray(store(values), np.float64) for store in STORES)]
    assert stored.least == min(forms)
    assert stored.greatest == max(forms)


@np.errstate(all="ignore")
def test_an_infinity_is_unchanged_by_a_store() -> None:
    values = np.array([np.inf, -np.inf])
    stored = Span.of(values).held()
    assert np.array_equal(stored.least, values)
    assert np.array_equal(stored.greatest, values)


@np.errstate(all="ignore")
def test_value_above_65504_has_three_stored_spans() -> None:
    spans = list(Span(np.array([1.0, 65000.0, 7e4]), np.array([1.0, 66000.0, 8e4])).stores())
    assert [span.ends[0].tolist() for span in spans] == [
        [1.0, 64992.0, 7e4],
        [1.0, 65504.0, 65504.0],
        [1.0, np.inf, np.inf],
    ]
    assert [span.ends[1].tolist() for span in spans] == [
        [1.0, 66000.0, 8e4],
        [1.0, 65504.0, 65504.0],
        [1.0, np.inf, np.inf],
    ]


@np.errstate(all="ignore")
def test_value_below_minus_65504_has_one_stored_span() -> None:
    least, greatest = np.array([-8e4, 7e4]), np.array([-7e4, 7e4])
    ends = [(span.least[0], span.greatest[0]) for span in Span(least, greatest).stores()]
    assert ends == [(-np.inf, -65504)] * 3


def test_values_within_float16_have_one_stored_span() -> None:
    span = Span(np.array([0.1, 65000.0]), np.array([0.2, 65504.0]))
    [stored] = span.stores()
    assert (stored.least <= span.least).all()
    assert (stored.greatest >= span.greatest).all()
