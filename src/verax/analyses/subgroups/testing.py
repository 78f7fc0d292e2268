"""Which subgroups are significantly miscalibrated: p-values from enough draws, corrected for their number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.cards.listcard import ListCard
from verax.analyses.subgroups.chance import Chance, WorkBudget, settle
from verax.analyses.subgroups.result import Subgroup
from verax.analyses.verdicts.calibration import enough_groups
from verax.errors import InputError, Remedy, join, passing, show
from verax.inference.estimates import holm
from verax.inference.findings import Level
from verax.inputs.arrays import Floats


def check_sizes(sizes: Mapping[Any, int], least: int) -> None:
    """Refuse subgroups that are too small."""
    small = {label: n for label, n in sizes.items() if n < least}
    if small:
        some = join(f"{show(label)} ({n})" for label, n in list(small.items())[:5])
        raise InputError(
            f"must give at least {show(least)} rows to every subgroup",
            argument="by",
            kind="length",
            found=f"{some} {'has' if len(small) == 1 else 'have'} fewer",
            values=list(small),
            remedies=[Remedy("Join small subgroups with others."), passing("to allow them", least=1)],
        )


def corrected(
    lines: list[Subgroup],
    level: float,
    draw: Mapping[tuple[Any, str], Callable[[int, int], Floats]],
    among: int,
) -> list[Subgroup]:
    """With p-values from enough draws and Holm's correction over all subgroups, for each model."""
    result: dict[tuple[Any, str], Subgroup] = {(line.label, line.model): line for line in lines}
    # Verdicts on all rows test subgroups last, at a smaller level, and take these draws.
    share, least = level / among, Level(level).after(answered=False).level / among
    for model in dict.fromkeys(line.model for line in lines):
        own = [line for line in lines if line.model == model]
        if any(line.p_value is None for line in own):
            continue
        work = WorkBudget(settings.subgroup_draws)
        for line in own:
            test = _tested(line, least, draw[line.label, model], work)
            result[line.label, model] = replace(
                line, p_value=test.p_value, undecided=not test.could_pass(share)
            )
    return adjusted(list(result.values()), level, among)


def adjusted(lines: Sequence[Subgroup], level: float, among: int) -> list[Subgroup]:
    """With Holm's correction over all subgroups, for each model; `among` is how many there are.

    Subgroups whose groups are too few for the test have no corrected p-value.
    """
    found = list(lines)
    for model in dict.fromkeys(line.model for line in lines):
        own = [i for i, line in enumerate(lines) if line.model == model]
        p = np.array([lines[i].p_value if _has_level(lines[i]) else math.nan for i in own], float)
        for i, q in zip(own, holm(p, among).tolist(), strict=True):
            known, out = not math.isnan(q), q <= level
            found[i] = replace(
                lines[i],
                p_adjusted=q if known else None,
                stands_out=out,
                undecided=lines[i].undecided and not out,
            )
    return found


def _has_level(line: Subgroup) -> bool:
    """Whether a subgroup was tested, and the test holds its level."""
    card, parted = line.card, line.decomposition
    if line.p_value is None or parted.n_groups is None or isinstance(card, ListCard):
        return line.p_value is not None
    counts = np.asarray(card.class_counts, float)
    rarer = card.effective_rows * (1 - counts.max() / counts.sum())
    return enough_groups(rarer, parted.n_groups, parted.n_classes)


def _tested(line: Subgroup, level: float, draw: Callable[[int, int], Floats], work: WorkBudget) -> Chance:
    """The test of one subgroup, with the draws that the level needs."""
    whole = line.decomposition.whole
    first = Chance(whole.miscalibration, whole.calibrated, whole.score)
    return settle(first, level, draw, work, (line.card.n_rows, line.decomposition.n_classes))
