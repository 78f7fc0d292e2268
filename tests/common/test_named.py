"""Values by name: what follows from `self[name]` and the names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from verax.common.named import NamedValues
from verax.errors import InputError


class Moons(NamedValues):
    """Lists two names, knows a third, and refuses a fourth."""

    def __getitem__(self, name: Any) -> float:
        if name == "pluto":
            raise InputError("must be a planet", argument="name")
        return {"earth": 1.0, "mars": 2.0, "venus": 0.0}[name]

    def __iter__(self) -> Iterator[str]:
        return iter(("mars", "earth"))


def test_they_are_listed_in_their_order():
    moons = Moons()
    assert moons.keys() == list(moons) == ["mars", "earth"]
    assert moons.values() == [2.0, 1.0]
    assert moons.items() == [("mars", 2.0), ("earth", 1.0)]
    assert dict(moons) == {"mars": 2.0, "earth": 1.0}
    assert len(moons) == 2


def test_names_that_are_not_listed_may_have_values():
    moons = Moons()
    assert "venus" in moons
    assert moons.get("venus", 7) == 0.0


@pytest.mark.parametrize("name", ["pluto", "sun"])
def test_others_are_absent_whether_unknown_or_refused(name):
    moons = Moons()
    assert name not in moons
    assert moons.get(name) is None
    assert moons.get(name, 7) == 7
