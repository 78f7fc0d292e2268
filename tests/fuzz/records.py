"""Records of every shape with something wrong in them: each file is read, or refused with its reason."""

from __future__ import annotations

import copy
import json
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import verax as vx
from listrecords import SHAPES, records_of, sample
from verax.files.lists import holds_lists, open_lists

JUNK: list[Any] = [
    *(None, True, 0, -1, 1e308, -9999.0, float("nan"), float("inf"), -float("inf"), 2**70, "", "x", "0"),
    *("\ufffd", "\ud800", [], {}, [[]], [None], {"a": None}, [1, 2], {"logprob": -1}, {"token": "a"}),
    [{"label": [], "score": "x"}],
]
NAMES = ("", "response", "body", "error", "logprobs", "label", "probabilities", "choices", "classes")
CHOICES: dict[str, tuple[Any, ...]] = {
    "classes": (None, 1000, 1000, 1000, 2, ["A", "B"], [" A", " B", " C", " D"]),
    "normalize": (False, True),
    "invalid": ("raise", "skip", "skip"),
    "missing": ("raise", "omit"),
    "others": ("raise", "omit"),
    "merge_variants": (None, None, "same", "space", "case", "punctuation"),
    "position": (None, None, 0, 0, 1, -1),
    "per_length": (False, False, True),
    "after": (None, None, None, "A", " ", "([A-D])", "x("),
    "last_match": (False, False, True),
    "samples": ("first", "first", "pool", "repeats", "x"),
    "id": (None, None, None, "id", "x.y"),
    "target": (None, None, None, "answer", "x.0"),
    "weights": (None, None, None, None, "w"),
    "shape": (*[None] * 6, "chat", "arrays", "lm-eval", "logprobs", "probabilities", "pipeline", "wide"),
}


def attempt(rng: np.random.Generator) -> None:
    """One file of records, most of them spoiled."""
    records = [spoiled(record, rng) if rng.random() < 0.7 else record for record in some(rng)]
    records += some(rng) if rng.random() < 0.2 else []
    options = {name: values[int(rng.integers(len(values)))] for name, values in CHOICES.items()}
    if rng.random() < 0.2:
        path = folder() / "records.json"
        path.write_text(json.dumps(records if rng.random() < 0.5 else records[0]))
    else:
        path = folder() / "records.jsonl"
        path.write_text("\n".join(map(json.dumps, records)))
    try:
        holds_lists(path, **options)
        # What files of lists call the outcomes of their records.
        options["outcome"] = options.pop("target")
        read = open_lists(path, **options)
        vx.evaluate(read.y, read.lists)
        if read.are_distributions:
            vx.evaluate(read.y, read.probabilities(), classes=read.classes)
    except vx.InputError:
        pass
    except Exception as error:
        raise AssertionError(f"{error!r} for {json.dumps(records)[:800]} with {options}") from error


def some(rng: np.random.Generator) -> list[Any]:
    """The records of a shape."""
    if rng.random() < 0.1:
        return [sample([-1.0, -2.0], "0", [" a", " b"]), sample([-1.0, -3.0], "1", [" a", " b"])]
    return records_of(str(rng.choice(list(SHAPES))))


def spoiled(record: Any, rng: np.random.Generator) -> Any:
    """A record of which some parts are missing, have another name, or are something else."""
    record = copy.deepcopy(record)
    for _ in range(int(rng.choice([1, 1, 2, 3]))):
        *way, last = paths(record)[int(rng.integers(len(paths(record))))] or (None,)
        junk = copy.deepcopy(JUNK[int(rng.integers(len(JUNK)))])
        if last is None:
            return junk
        inner = record
        for step in way:
            inner = inner[step]
        kind = rng.random()
        if kind < 0.2 and isinstance(inner, dict):
            del inner[last]
        elif kind < 0.3 and isinstance(inner, dict):
            inner[str(rng.choice(NAMES))] = inner.pop(last)
        else:
            inner[last] = junk
    return record


def paths(value: Any, before: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of all parts of a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [before, *(path for key, part in inner for path in paths(part, (*before, key)))]


@cache
def folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="verax-fuzz-"))
