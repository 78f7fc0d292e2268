"""The law of the house (`tests/house.py`): a core that knows no wing, arrows that point down, no circle."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import house
import verax as vx
from verax.common.summaries import KINDS
from verax.common.wings import wings

ROOT = Path(vx.__file__).parent


@cache
def measured() -> house.House:
    """The house as it stands."""
    return house.House(ROOT)


def test_arrows_keep_the_law():
    assert list(measured().illegal()) == []


def test_no_files_import_each_other_in_a_circle():
    assert measured().circles() == []


def test_no_wings_use_each_other_in_a_circle():
    assert measured().circles_of_wings() == []


def test_the_core_and_each_wing_keep_their_budgets():
    rooms, wings = measured().lines()
    assert rooms.total() <= house.CORE
    assert {wing: lines for wing, lines in wings.items() if lines > house.WING} == {}


def test_every_room_has_its_floor():
    rooms = {measured().room(name) for name in measured().files if not measured().wing(name)}
    lists = {name for name in house.LISTS if "." not in name}
    assert rooms - {"", "wings"} == {*house.FLOOR, *lists}


def said(option):
    """How deep a call is, and the modules that it enters, in a process of its own: calls of others would
    count.
    """
    command = [sys.executable, house.__file__, str(ROOT), option]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.split() for line in lines if " deep " in line]
    return [tuple(int(words[words.index(word) - 1]) for word in ("deep", "modules")) for words in found]


def test_evaluate_does_not_call_deeper_than_its_budget():
    ((deep, modules),) = said("--depth")
    assert deep <= house.DEPTH
    assert modules <= house.MODULES


def test_a_page_does_not_call_deeper_than_its_budget():
    for deep, modules in said("--page"):
        assert deep <= house.PAGE_DEPTH
        assert modules <= house.PAGE_MODULES


@pytest.mark.parametrize("wing", wings(), ids=lambda wing: wing.name)
class TestDeclaration:
    """What a wing says of itself is so."""

    def test_its_places_exist(self, wing):
        places = [*wing.functions.items(), *wing.results.items()]
        assert [name for name, place in places if wing.at(place).__name__ != name] == []
        placed = [place for card in wing.cards.values() for place in (card.loads, card.shows)]
        assert [place for place in placed if not callable(wing.at(place))] == []

    def test_what_it_saves_has_kinds(self, wing):
        modules = {wing.at(module).__name__ for module in wing.saved}
        assert modules <= {cls.__module__ for cls in KINDS.values()}

    def test_its_names_are_public(self, wing):
        assert set(wing.functions) <= set(vx.__all__)
        assert set(wing.results) <= set(vx.results.__all__)

    def test_every_public_name_of_it_is_declared(self, wing):
        inside = f"verax.wings.{wing.name}."
        functions = {
            name for name in vx.__all__ if getattr(getattr(vx, name), "__module__", "").startswith(inside)
        }
        results = {n for n in vx.results.__all__ if getattr(vx.results, n).__module__.startswith(inside)}
        assert (functions, results) == (set(wing.functions), set(wing.results))

    def test_its_page_stands(self, wing):
        page = Path(__file__).parents[1] / wing.tutorial
        assert page.is_file()
