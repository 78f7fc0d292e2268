"""Recalibrations as JSON files: written strictly, and read with every part checked."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from verax.analyses.stored import read_stored
from verax.common.strictjson import number
from verax.errors import show
from verax.inference.intervals import Interval
from verax.inputs.groups import GroupCount
from verax.wings.recalibrate.choosing import Blend
from verax.wings.recalibrate.curves import MonotoneCurve, curve_of
from verax.wings.recalibrate.forms import (
    CalibrationMap,
    Isotonic,
    LogLinear,
    Unchanged,
    checked_numbers,
    isotonic_of,
    log_linear_of,
    unfit,
)
from verax.wings.recalibrate.lists import ListScaling, list_form_of
from verax.wings.recalibrate.records import BEST, METHOD_TITLES, TITLES, Gain, Trial

# Version 1 measured a choice by nested cross-validation, and had no test of calibration.
FORMAT, VERSION = "verax recalibration", 2


def facts_in(path: Path) -> tuple[dict[str, Any], tuple[int, int] | None]:
    """The fields of a recalibration from its file, and the sizes of its sample."""
    kind = (FORMAT, VERSION)
    return read_stored(path, kind, "recalibration", lambda stored: (_fields(stored), _sampled(stored)))


def _fields(stored: dict[str, Any]) -> dict[str, Any]:
    form_fields = _of_lists(stored) if stored.get("of_lists") is not None else _of_distributions(stored)
    if stored["method"] not in METHOD_TITLES:
        raise ValueError("method")
    old = stored["version"] < VERSION
    trials = tuple(_trial(entry) for entry in stored["trials"] if not (old and entry["method"] == BEST))
    if not trials or trials[0].method != "none" or stored["method"] not in {t.method for t in trials}:
        raise ValueError("trials")
    return {
        "method": stored["method"],
        "trials": trials,
        **form_fields,
        "n_groups": _groups(stored["n_groups"]),
        "confidence": number(stored["confidence"]),
        "calibration_p": math.nan
        if old or stored["calibration_p"] is None
        else number(stored["calibration_p"]),
        **{name: _text(stored[name]) for name in ("asked", "rule")},
        **{name: _of(int, stored[name]) for name in ("n_rows", "folds", "seed")},
        **{name: tuple(_text(entry) for entry in stored[name]) for name in ("notes", "columns")},
        "ordered": _of(bool, stored["ordered"]),
    }


def form_of(stored: Any, n_classes: int) -> CalibrationMap:
    """The form that JSON holds, with every number checked."""
    if not isinstance(stored, dict):
        raise unfit("must be an object")
    kind = stored.get("kind")
    if kind == Unchanged.kind:
        return Unchanged()
    if kind == Blend.kind:
        return _blend_of(stored, n_classes)
    known: dict[Any, Callable[[dict[str, Any], int], CalibrationMap]] = {
        LogLinear.kind: log_linear_of,
        Isotonic.kind: isotonic_of,
        MonotoneCurve.kind: curve_of,
    }
    if kind not in known:
        raise unfit("must be of a known kind")
    return known[kind](stored, n_classes)


def _is_blend(stored: Any) -> bool:
    return isinstance(stored, dict) and stored.get("kind") == Blend.kind


def _blend_of(stored: dict[str, Any], n_classes: int) -> Blend:
    methods, parts, weights = (
        stored.get("methods"),
        stored.get("parts"),
        checked_numbers(stored.get("weights")),
    )
    if not isinstance(methods, list) or not isinstance(parts, list) or not set(methods) <= set(TITLES):
        raise unfit("must have lists of methods and parts")
    if weights.shape != (len(parts),) or len(methods) != len(parts) or (weights < 0).any():
        raise unfit("must have a weight that is not negative for each part")
    if not abs(weights.sum() - 1) < 1e-6 or any(_is_blend(part) for part in parts):
        raise unfit("must have weights of sum one, and parts that are no blends")
    return Blend(tuple(methods), tuple(form_of(part, n_classes) for part in parts), weights)


def _of_distributions(stored: dict[str, Any]) -> dict[str, Any]:
    frequencies = np.array(stored["frequencies"], dtype=float)
    k = len(frequencies)
    valid = frequencies.ndim == 1 and k >= 2 and bool((frequencies >= 0).all())
    if not valid or not abs(frequencies.sum() - 1) < 1e-6:
        raise ValueError("frequencies")
    classes = stored["classes"]
    if classes is not None and (len(classes) != k or len(set(classes)) != k):
        raise ValueError("classes")
    named = None if classes is None else tuple(classes)
    return {"form": form_of(stored["form"], k), "classes": named, "frequencies": frequencies}


def _of_lists(stored: dict[str, Any]) -> dict[str, Any]:
    about = stored["of_lists"]
    n_classes, n_invalid = (_of(int, about[name]) for name in ("n_classes", "n_invalid"))
    if n_classes < 2 or n_invalid < 0:
        raise ValueError("of_lists")
    unchanged = stored["form"] == Unchanged().to_dict()
    if not unchanged and stored["form"].get("kind") != ListScaling.kind:
        raise ValueError("form")
    form = Unchanged() if unchanged else list_form_of(stored["form"])
    none: dict[str, Any] = {"classes": None, "frequencies": np.zeros(0)}
    return {"form": form, **none, "lists_of": n_classes, "n_invalid": n_invalid}


def _sampled(stored: dict[str, Any]) -> tuple[int, int] | None:
    """The number of rows in the sample that it was fitted to, and of all rows; None of all rows."""
    sizes = stored.get("sampled")
    return None if sizes is None else (_of(int, sizes["n_rows"]), _of(int, sizes["of"]))


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{show(value)} is no {kind.__name__}")
    return value


def _groups(value: Any) -> GroupCount | None:
    if isinstance(value, list):
        first, second = value
        return _of(int, first), _of(int, second)
    return None if value is None else int(_of(int, value))


def _text(value: Any) -> str:
    return str(_of(str, value))


def _trial(stored: dict[str, Any]) -> Trial:
    method = stored["method"]
    if method not in METHOD_TITLES:
        raise ValueError(f"there is no method {show(method)}")
    gain = stored["gain"]
    return Trial(
        method,
        number(stored["loss"]),
        Gain(
            number(gain["value"]),
            Interval.from_dict(gain["interval"]),
            number(gain["share"]),
            Interval.from_dict(gain["share_interval"]),
        ),
        _text(stored["detail"]),
    )
