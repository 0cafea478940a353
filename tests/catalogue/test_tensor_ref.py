"""References to tensors are read from names, written as names, and replace a single tensor.

The tested code is in `dmlconf/catalogue/tensor_ref.py`.
"""

from __future__ import annotations

import pytest

from dmlconf.catalogue.tensor_ref import TensorRef


@pytest.mark.parametrize(
    ("name", "ref"), [("ATensor", TensorRef("ATensor")), ("Inputs[12]", TensorRef("Inputs", 12))]
)
def test_a_reference_is_read_and_written(name: str, ref: TensorRef) -> None:
    assert TensorRef.of(name) == ref
    assert str(ref) == name


@pytest.mark.parametrize("name", ["Inputs[12", "Inputs[1]2", "Inputs[]", "Inputs[x]", "Inputs[12x"])
def test_a_name_whose_brackets_hold_no_index_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"has no \] at its end|invalid literal for int"):
        TensorRef.of(name)


def test_replacing_a_tensor_gives_a_new_desc() -> None:
    desc = {"A": 1, "Many": (2, 3, 4)}
    second = TensorRef("Many", 1)
    assert second.read(desc) == 3
    assert second.replaced(desc, 9) == {"A": 1, "Many": (2, 9, 4)}
    assert TensorRef("A").replaced(desc, 9) == {"A": 9, "Many": (2, 3, 4)}
    assert desc == {"A": 1, "Many": (2, 3, 4)}
