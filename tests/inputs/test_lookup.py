"""Labels are looked up the same way whatever their type and width, against a plain dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from verax.inputs.outcomes import UNKNOWN, LookUp

NAMES = st.lists(
    st.text(st.characters(exclude_characters="\0"), max_size=9), min_size=1, max_size=70, unique=True
)


def expected(classes, labels):
    positions = {name: i for i, name in enumerate(classes)}
    return [positions.get(label, UNKNOWN) for label in labels]


@pytest.mark.long
@given(NAMES, st.data())
def test_texts_of_any_width(classes, data):
    labels = data.draw(st.lists(st.one_of(st.sampled_from(classes), st.text(max_size=4)), max_size=40))
    labels = [label.rstrip("\0") for label in labels]
    look_up = LookUp(tuple(classes))
    for dtype in (None, "U20", object):
        y = np.array(labels, dtype) if labels else np.array([], "U3")
        assert look_up(y).tolist() == expected(classes, labels)


@pytest.mark.parametrize("n_classes", [3, 64, 65, 1000])
def test_many_classes(n_classes):
    classes = tuple(f"class number {i}" for i in range(n_classes))
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 40_000)
    labels = np.array(classes)[y]
    np.testing.assert_array_equal(LookUp(classes)(labels), y)
    np.testing.assert_array_equal(LookUp(classes)(labels[::-3]), y[::-3])
    np.testing.assert_array_equal(LookUp(classes)(labels.astype(">U20")), y)
    octets = tuple(name.encode() for name in classes)
    np.testing.assert_array_equal(LookUp(octets)(np.array(octets)[y]), y)
    labels[7] = "class number"
    assert LookUp(classes)(labels)[7] == UNKNOWN


def test_a_class_that_is_longer_than_all_texts_is_not_cut_off():
    assert LookUp(("abcdef", "ab"))(np.array(["abc", "ab", "a", ""])).tolist() == [
        UNKNOWN,
        1,
        UNKNOWN,
        UNKNOWN,
    ]
    assert LookUp(("abcdef", "ghijk"))(np.array(["abc"])).tolist() == [UNKNOWN]


def test_large_inputs_with_text_labels_score_like_positions():
    rng = np.random.default_rng(1)
    p = rng.dirichlet(np.ones(3), 200_000)
    y = rng.integers(0, 3, len(p))
    names = ["low", "middle", "high"]
    for labels in (np.array(names)[y], np.array(names, object)[y]):
        assert vx.rps(labels, p, classes=names) == vx.rps(y, p)
        labels[150_000] = "none"
        with pytest.raises(vx.InputError, match="row 150000 holds 'none'"):
            vx.rps(labels, p, classes=names)
