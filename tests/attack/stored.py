"""Saved files with values changed inside and checksums that are right: only verax's own errors may come out.

Each call takes a file that `tests/saved` makes, changes something in one of its summaries (a field dropped,
renamed, of another type, shape, sign or size), writes it again, and uses it as users do: loads its card,
merges it with itself and saves it, or asks for an analysis of what was changed.
"""

from __future__ import annotations

import importlib.util
import json
import math
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock
from zipfile import ZipFile

import numpy as np

import verax as vx
from attack.law import lawful
from verax.analyses.cards.container import read_summaries, write_summaries
from verax.analyses.loading import merged_card
from verax.common.packing import _parts, dump, kind_in, load
from verax.scans.names import former_names, saved_name
from verax.scans.saved import SavedHandle, merge_saved

SAVED = Path(__file__).parents[1] / "saved"
FOLDER = Path(tempfile.mkdtemp())
OPENED = ("dense", "weighted", "models", "lists", "grouped lists")
# Analyses that take less than a second.
QUICK = ("evaluate", "brier", "decompose", "ece", "retention", "risk", "worst", "lengths", "ordered", "qwk")
QUICK += ("net benefit", "murphy", "subgroups", "compare", "reliability", "slope")


@cache
def making() -> Any:
    spec = importlib.util.spec_from_file_location("saved_making", SAVED / "making.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def files() -> dict[str, dict[str, bytes]]:
    """The summaries of each file that this version saves, and of those that an older one saved."""
    found = {}
    for name in (
        "dense",
        "weighted",
        "models",
        "lists",
        "grouped lists",
        "plain",
        "costs",
        "two ways",
        "skipped",
    ):
        making().save(FOLDER, name, SAVED / "rows")
        found[name] = read_summaries(FOLDER / f"{name}0.verax")
    reports = ("dense report", "weighted report", "list report")
    with ZipFile(SAVED / "0.2.0.zip") as archive:
        # Only these: the other files were made above, by this version.
        archive.extractall(FOLDER, [f"{name}0.verax" for name in reports])
    for name in reports:
        found[name] = read_summaries(FOLDER / f"{name}0.verax")
    return found


@cache
def asked(name: str, what: str) -> list[str]:
    """The names of the summaries that an analysis of a file asks for."""
    found: list[str] = []
    read = SavedHandle._merged

    def spy(handle: SavedHandle, recipe: Any) -> Any:
        found.extend((saved_name(recipe, handle.models), *former_names(recipe, handle.models)))
        return read(handle, recipe)

    with mock.patch.object(SavedHandle, "_merged", spy):
        making().analyses(name)[what](vx.scan(FOLDER / f"{name}0.verax"))
    return [key for key in found if key in files()[name]]


NUMBERS: tuple[Any, ...] = (-1, 0, 1, 2, 7, 2**31, 2**62, 2**63, 10**30, 10**400, 0.5, math.nan, math.inf)
OTHERS: tuple[Any, ...] = (
    None,
    True,
    "",
    "x",
    b"abc",
    [],
    {},
    (),
    [1, "a"],
    {"a": 1},
    np.zeros(0),
    np.int64(3),
)
ELEMENTS = (-1.0, 0.0, 1.0, 1e300, np.nan, np.inf, 2.0**62, -3.5)


def _array(rng: np.random.Generator, array: np.ndarray) -> Any:
    """An array with other numbers, or of another shape or type."""
    plain = array.dtype.names is None and array.dtype.kind in "fiub"
    if rng.random() < 0.6 and plain and array.size:
        changed = array.copy()
        with np.errstate(all="ignore"):
            for _ in range(int(rng.integers(1, 4))):
                value = np.array(rng.choice(ELEMENTS)).astype(array.dtype)
                changed.flat[rng.integers(array.size)] = value
        return changed
    ways: list[Callable[[], Any]] = [
        lambda: array[: len(array) // 2],
        lambda: np.concatenate([array, array]),
        lambda: array.reshape(-1),
        lambda: array[None],
        lambda: array.T,
        lambda: array[::-1],
        array.tolist,
    ]
    if plain:
        with np.errstate(all="ignore"):
            kind = str(rng.choice(["f4", "f8", "i4", "i8", "u8", "?", "U5"]))
            ways += [lambda: array.astype(kind), lambda: array * 0, lambda: -array.astype(float)]
    with np.errstate(all="ignore"):
        return ways[rng.integers(len(ways))]()


def mutate(rng: np.random.Generator, value: Any) -> Any:
    """The same with something changed, here or further inside."""
    if isinstance(value, bytes) and value.startswith(b"VERAX"):
        kind, version = kind_in(value), json.loads(_parts(value)[0])["version"]
        changed = mutate(rng, load(value, kind, version=version))
        return dump(kind, changed if isinstance(changed, dict) else {"values": changed}, version=version)
    inner = isinstance(value, (dict, list, tuple)) and len(value) > 0
    if rng.random() < 0.04 or not (inner or isinstance(value, np.ndarray)):
        known = NUMBERS if isinstance(value, (int, float)) and rng.random() < 0.8 else (*OTHERS, *NUMBERS)
        return known[rng.integers(len(known))]
    if isinstance(value, np.ndarray):
        return _array(rng, value) if value.ndim else value
    places = list(value) if isinstance(value, dict) else list(range(len(value)))
    at, kind = places[rng.integers(len(places))], rng.random()
    if isinstance(value, dict):
        if kind < 0.04:
            return {key: own for key, own in value.items() if key != at}
        if kind < 0.07:
            return {("other" if key == at else key): own for key, own in value.items()}
        return {**value, "more": 1} if kind < 0.09 else {**value, at: mutate(rng, value[at])}
    if kind < 0.1:
        return type(value)([*value[:at], *value[at + 1 :]])
    if kind < 0.2:
        return type(value)([*value, value[at]])
    return type(value)(mutate(rng, own) if i == at else own for i, own in enumerate(value))


def merged(path: Path) -> None:
    """Merge a file with itself, and save it."""
    merge_saved([path, path], merged_card([path, path]).card, path.with_name("merged.verax"))


def loaded(path: Path) -> None:
    """Load the card of a file, and print it."""
    card = vx.load(path)
    repr(card), card.to_dict()


def attempt(rng: np.random.Generator) -> None:
    names = [name for name in files() if "report" not in name or rng.random() < 0.3]
    name = names[rng.integers(len(names))]
    summaries, path = dict(files()[name]), FOLDER / "changed.verax"
    keys, use = list(summaries), [merged, loaded][rng.integers(2)]
    if name in OPENED and rng.random() < 0.8:
        quick = [what for what in making().analyses(name) if what in QUICK]
        what = quick[rng.integers(len(quick))]
        keys = asked(name, what)

        def use(path: Path) -> None:
            result = making().analyses(name)[what](vx.scan(path if what == "slope" else [path, path]))
            repr(result), getattr(result, "to_dict", dict)()

    elif use is loaded:
        keys = ["card"]
    key = keys[rng.integers(len(keys))]
    if key not in summaries:
        return
    for _ in range(int(rng.integers(1, 3))):
        summaries[key] = mutate(rng, summaries[key])
    write_summaries(path, summaries)
    lawful(lambda: use(path), f"{name}, {key} changed, {use.__name__}")
