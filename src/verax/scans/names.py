"""Names of saved summaries: today's, spelled from the settings of recipes, and those of earlier files."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from verax.common.spelling import LATER, spelled
from verax.inputs.handles import Recipe

# The names of classes and functions in recipes when files were first saved.
_SAVED_AS = {"UncertaintyScore(": "Doubt(", "<function expected_of_itself>": "<function _expected_of_itself>"}
# Inside of rules the log score was once called "log"; on its own it was not.
_FORMER_LOG = re.compile(r"(?<!')\blog_score\b|\blog_score\b(?!')")


def saved_name(recipe: Recipe[Any], models: Sequence[str]) -> str:
    """The name of the summary that a recipe makes, the same in every process.

    Models without a name are named after their files, so a recipe about one model uses its place.
    """
    return _name(recipe, spelled(recipe, {"model": {name: i for i, name in enumerate(models)}}))


def former_names(recipe: Recipe[Any], models: Sequence[str]) -> tuple[str, ...]:
    """The names of the same summary in files of 0.3 and before, the latest first.

    They came from how recipes print.
    """
    with np.printoptions(threshold=sys.maxsize, floatmode="unique"):
        return tuple(_name(recipe, _as_saved(recipe, text, models)) for text in recipe.former_texts())


def _as_saved(recipe: Any, text: str, models: Sequence[str]) -> str:
    """The text of a recipe as 0.3 had it."""
    text = re.sub(r" at 0x[0-9a-f]+", "", text)
    for option in fields(recipe) if is_dataclass(recipe) else ():
        if LATER.items() <= option.metadata.items():
            text = text.replace(f", {option.name}={option.default!r}", "")
    for now, saved in _SAVED_AS.items():
        text = text.replace(now, saved)
    text = _FORMER_LOG.sub("log", text)
    for i, name in enumerate(models):
        text = text.replace(f"model={name!r}", f"model={i}")
    return text


def _name(recipe: Recipe[Any], text: str) -> str:
    return f"{type(recipe).__name__}-{blake2b(text.encode(), digest_size=12).hexdigest()}"
