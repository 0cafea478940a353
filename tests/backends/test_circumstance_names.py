"""Circumstances that a backend does not support are refused; a hint lists the supported ones.

The tested code is in `dmlconf/backends/circumstances.py`.
"""

from __future__ import annotations

import pytest

from dmlconf.backends.circumstances import Circumstance, chosen_circumstances
from dmlconf.backends.protocol import BackendError, Capabilities
from dmlconf.catalogue.model import FeatureLevel


def capabilities(*circumstances: Circumstance) -> Capabilities:
    return Capabilities(FeatureLevel(6, 4), frozenset(), circumstances=frozenset(circumstances))


@pytest.mark.parametrize(
    ("supported", "message", "hint"),
    [
        ((), "x does not support --circumstances evicted: it supports none", "runs cases plainly"),
        (
            (Circumstance.REPEATED, Circumstance.OWNED),
            "x does not support --circumstances evicted",
            "It supports",
        ),
    ],
)
def test_unsupported_circumstance_is_refused_with_a_hint(
    supported: tuple[Circumstance, ...], message: str, hint: str
) -> None:
    with pytest.raises(BackendError) as raised:
        chosen_circumstances(("evicted",), capabilities(*supported), "x")
    assert raised.value.message == message
    assert raised.value.hint is not None
    assert hint in raised.value.hint
    assert all(each in raised.value.hint for each in supported)


@pytest.mark.parametrize("supported", [(), (Circumstance.REPEATED, Circumstance.OWNED)])
def test_supported_circumstances_or_none_are_chosen(
    supported: tuple[Circumstance, ...],
) -> None:
    chosen = chosen_circumstances(supported or ("none",), capabilities(*supported), "x")
    assert chosen == supported
