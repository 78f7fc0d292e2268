"""Settings are spelled alike if they are equal, and otherwise if not: in every process and every order."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import verax as vx
from verax.common.spelling import LATER, spelled

KEYS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
KEYS |= st.dates() | st.datetimes()
PLAIN = st.recursive(
    KEYS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.frozensets(KEYS, max_size=3)
    ),
    max_leaves=8,
)


def meant(value: Any) -> Any:
    """What a setting means, to compare by Python's own equality."""
    if isinstance(value, dict):
        return "mapping", frozenset((key, meant(inner)) for key, inner in value.items())
    if isinstance(value, (list, tuple)):
        return "sequence", tuple(map(meant, value))
    return value


@given(PLAIN, PLAIN)
def test_equal_settings_are_spelled_alike_and_others_are_not(one, other):
    assert (spelled(one) == spelled(other)) == (meant(one) == meant(other))


NUMBERS = (
    st.booleans() | st.integers(-3, 3) | st.floats(-3, 3) | st.sampled_from([0.5, -0.0, 2.0**60, 2**60 + 1])
)


@given(st.lists(st.lists(NUMBERS, min_size=2, max_size=2), max_size=3))
def test_tables_of_equal_numbers_are_spelled_alike(rows):
    text = spelled(rows)
    assert spelled(tuple(map(tuple, rows))) == text
    # As the values of the list are, 2^60 + 1 included.
    assert spelled(np.array(rows, object)) == text
    exact = np.array(rows, float)
    assert (spelled(exact) == text) == (exact.tolist() == rows)


@given(st.dictionaries(KEYS, KEYS), st.randoms(use_true_random=False))
def test_the_order_of_mappings_and_sets_does_not_matter(table, random):
    names = list(table)
    random.shuffle(names)
    assert spelled({name: table[name] for name in names}) == spelled(table)
    assert spelled(dict.fromkeys(names).keys()) == spelled(set(table))


class Colour(Enum):
    RED = 1
    BLUE = 2


@dataclass
class Options:
    model: str
    costs: Any = None
    level: float = field(default=0.5, metadata=LATER)
    names: list[str] = field(default_factory=lambda: ["a"], metadata=LATER)
    hint: int = field(default=0, compare=False)


class Rounded:
    def __init__(self, value: float, note: str) -> None:
        self.value, self.note = value, note

    def named_by(self) -> dict[str, Any]:
        return {"value": round(self.value, 3)}


def test_dataclasses_are_spelled_by_the_fields_that_tell_them_apart():
    usual = spelled(Options("a"))
    assert usual == "Options(model='a', costs=None)"
    assert spelled(Options("a", level=1 / 2, names=("a",), hint=3)) == usual
    different = [Options("b"), Options("a", 0), Options("a", level=0.6), Options("a", names=["b"])]
    assert len({usual, *map(spelled, different)}) == 5
    assert spelled(Rounded(0.12345, "x")) == spelled(Rounded(0.1234, "y")) == "Rounded(value=0.123)"


def test_what_stands_for_a_value_does_so_at_any_depth_and_in_its_fields_only():
    place = {"model": {"a": 0}}
    assert spelled([Options("a")], place) == "[Options(model=0, costs=None)]"
    assert spelled(Options("b", {"model": "a"}), place) == "Options(model='b', costs={'model': 'a'})"
    assert spelled(Options("0"), place) != spelled(Options("a"), place)


@pytest.mark.parametrize(
    "alike",
    [
        (np.float64(0.1), 0.1, np.array(0.1)),
        (np.float32(0.5), 0.5),
        (np.int8(3), 3, 3.0, np.uint64(3)),
        (np.str_("a"), "a", np.array("a")),
        (np.bytes_(b"a"), b"a"),
        (np.array(["a", None], object), ["a", None]),
        (np.datetime64("2026-01-01"), date(2026, 1, 1)),
        (np.datetime64("2026-01-01T05:00:00.5", "ns"), datetime(2026, 1, 1, 5, 0, 0, 500_000)),
        (pd.Timestamp("2026-01-01T05"), datetime(2026, 1, 1, 5), np.datetime64("2026-01-01T05:00", "us")),
        (np.array(["2026-01-01"], "M8[D]"), [date(2026, 1, 1)]),
    ],
)
def test_numpy_and_python_are_spelled_alike(alike):
    assert len(set(map(spelled, alike))) == 1


def test_other_kinds_of_settings():
    some = [
        Colour.RED,
        Colour.BLUE,
        timedelta(1),
        date(1, 1, 1),
        "1",
        b"1",
        1,
        None,
        "None",
        {},
        set(),
        [],
        "",
    ]
    assert len(set(map(spelled, some))) == len(some)
    assert spelled(float("nan")) == spelled(np.nan)
    assert spelled(vx.brier) == "Brier(scale='sum')"


@pytest.mark.parametrize("value", [object(), len, lambda: 0, np.longdouble(1), 1j])
def test_what_has_no_spelling_is_refused(value):
    with pytest.raises(vx.VeraxError, match="spell"):
        spelled({"inside": [value]})


def test_every_process_spells_alike():
    """Hashes of texts, and so the order of sets, differ between these."""
    code = "from verax.common.spelling import spelled; import verax as vx\n"
    code += "print(spelled([{'a', 'b', 'c', 'd'}, {'x': {3.5, None, 'y'}}, vx.pbs, vx.rules.Log(base=2)]))"
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(texts) == 1


class Plain:
    """An object of a user, without a declared form."""

    def __init__(self, power, costs):
        self.power, self.costs = power, costs


def test_objects_are_spelled_by_class_and_attributes():
    assert spelled(Plain(2, [1, 2])) == spelled(Plain(2.0, (1, 2)))
    assert spelled(Plain(2, [1, 2])) != spelled(Plain(3, [1, 2]))
    assert spelled(Plain) in spelled(Plain(1, None))
    with pytest.raises(vx.VeraxError, match="a function that is defined at the top of a module"):
        spelled(Plain(lambda x: x, None))
