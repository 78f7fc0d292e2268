"""Which subgroups are significantly miscalibrated: p-values from enough draws, corrected for their number."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from verax._settings import settings
from verax.analyses.subgroups.chance import Chance, WorkBudget, settle
from verax.analyses.subgroups.result import Subgroup
from verax.errors import InputError, Remedy, join, passing, show
from verax.inference.estimates import holm
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
    for model in dict.fromkeys(line.model for line in lines):
        own = [line for line in lines if line.model == model]
        if any(line.p_value is None for line in own):
            continue
        share, work = level / among, WorkBudget(settings.subgroup_draws)
        tests = [_tested(line, share, draw[line.label, model], work) for line in own]
        adjusted = holm(np.array([test.p_value for test in tests]), among)
        for line, test, p in zip(own, tests, adjusted.tolist(), strict=True):
            out = p <= level
            result[line.label, model] = replace(
                line,
                p_value=test.p_value,
                p_adjusted=p,
                stands_out=out,
                undecided=not (out or test.could_pass(share)),
            )
    return list(result.values())


def _tested(line: Subgroup, level: float, draw: Callable[[int, int], Floats], work: WorkBudget) -> Chance:
    """The test of one subgroup, with as many draws as the level takes."""
    whole = line.decomposition.whole
    first = Chance(whole.miscalibration, whole.calibrated, whole.score)
    return settle(first, level, draw, work, (line.card.n_rows, line.decomposition.n_classes))
