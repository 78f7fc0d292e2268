"""Garbage calls: valid calls of everything public, with one or two arguments that do not belong there.

An odd argument takes the place of a valid one, or of a part of it: an element, a row, a key.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from attack import calls, odd
from attack.law import lawful


@cache
def _folder() -> Path:
    return Path(mkdtemp(prefix="verax-attack-"))


def attempt(rng: np.random.Generator) -> None:
    """One call of something public with odd values among its arguments."""
    names = list(calls.targets())
    name = names[int(rng.integers(len(names)))]
    call = calls.targets()[name]
    values, said = garbled(rng, name)
    shown = f"{name}({', '.join(said)})"
    before = os.getcwd()
    # Names of files may be odd, and are here.
    os.chdir(_folder())
    try:
        lawful(lambda: calls.called(call, values), shown)
    finally:
        os.chdir(before)


def garbled(rng: np.random.Generator, name: str) -> tuple[dict[str, Any], list[str]]:
    """The arguments of a valid call, one or two of them odd, and what these are called."""
    call = calls.targets()[name]
    values, known = calls.arguments(name, call), calls.parameters(call)
    for parameter in known:
        make = calls.plausible(name, parameter.name)
        if parameter.name not in values and make is not None and rng.random() < 0.1:
            values[parameter.name] = make()
    said = []
    if known:
        for i in rng.choice(len(known), size=min(len(known), int(rng.integers(1, 3))), replace=False):
            parameter = known[i].name
            values[parameter], what = _odd(rng, values.get(parameter))
            said.append(f"{parameter}=<{what}>")
    return values, said


def _odd(rng: np.random.Generator, valid: Any) -> tuple[Any, str]:
    """An odd value, or a valid one that is odd in one place."""
    name = str(rng.choice(list(odd.ODD)))
    value = odd.made(name, fitting=bool(rng.random() < 0.8))
    # Half of the values that have parts keep the others.
    if rng.random() < 0.5:
        return value, name
    if isinstance(valid, dict) and valid:
        key = list(valid)[int(rng.integers(len(valid)))]
        inner, what = _odd(rng, valid[key])
        return {**valid, key: inner}, f"{key!r}: {what}"
    if isinstance(valid, (list, tuple)) and valid:
        at = int(rng.integers(len(valid)))
        inner, what = _odd(rng, valid[at])
        return type(valid)([*valid[:at], inner, *valid[at + 1 :]]), f"[{at}]: {what}"
    if isinstance(valid, np.ndarray) and valid.ndim and len(valid) and np.isscalar(value):
        return _with_element(rng, valid, value), f"an element: {name}"
    return value, name


def _with_element(rng: np.random.Generator, valid: np.ndarray, value: Any) -> np.ndarray:
    """An array with another element; of objects, where its type has none such."""
    at = int(rng.integers(valid.size))
    for dtype in (valid.dtype, object):
        changed = valid.astype(dtype)
        try:
            with np.errstate(all="ignore"):
                changed.flat[at] = value
        except (TypeError, ValueError, OverflowError):
            continue
        return changed
    return valid
