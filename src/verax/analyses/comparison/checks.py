"""Checks of what models are compared by: their number, the reference, the margin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verax.analyses.comparison.references import FREQUENCIES, UNIFORM, check_reference
from verax.common.checks import check_number
from verax.errors import InputError, passing, show
from verax.inputs.handles import Handle
from verax.scores.base import Rule
from verax.scores.registry import name_of


def check_margin(margin: float | None, rules: Sequence[Rule]) -> float | None:
    """Check a margin, which needs a single rule."""
    if margin is None:
        return None
    if len(rules) > 1:
        raise InputError(
            "is in units of one rule",
            argument="margin",
            found=f"there are {len(rules)}: {', '.join(map(name_of, rules))}",
            remedies=[passing(rule=name_of(rules[0]))],
        )
    return check_number("margin", margin, "must be a positive number", lambda value: value > 0)


def check_among(handle: Handle, reference: object) -> None:
    """Refuse fewer than two models, and a reference that is not a model."""
    known = isinstance(reference, str) and reference in handle.models
    check_models(handle, reference if known else None)
    if reference is not None and not known:
        raise InputError(
            f"must be the name of a model, not {show(reference)}", argument="reference", values=[reference]
        )


def check_models(handle: Handle, reference: object) -> None:
    """Refuse too few models, and a reference that is neither a model nor a simple forecast."""
    n = len(handle.models)
    if n < (2 if reference is None else 1):
        simple = UNIFORM if handle.listed else FREQUENCIES
        raise InputError(
            "must name at least two models",
            argument="forecasts",
            found=f"there {'is' if n == 1 else 'are'} {n}",
            remedies=[passing("to measure the skill of one model", reference=simple)],
        )
    if reference is not None and not isinstance(reference, str):
        raise InputError(
            f"must be the name of a model or of a simple forecast, not {show(reference)}",
            argument="reference",
            kind="type",
            values=[reference],
        )
    if reference is not None and reference not in handle.models:
        check_reference(reference, handle.models, lists=bool(handle.listed))
        if reference == FREQUENCIES and not handle.has_rows:
            raise InputError(
                "cannot be class frequencies where there are saved summaries only: they need a second pass",
                argument="reference",
                values=[reference],
                remedies=[passing(reference=UNIFORM)],
            )


def refuse(given: Mapping[str, bool], where: str) -> None:
    """Refuse arguments that were given and cannot be used `where`."""
    for argument, is_given in given.items():
        if is_given:
            raise InputError(f"cannot be used {where}", argument=argument)
