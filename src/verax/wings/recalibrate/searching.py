"""Searches for the numbers that lose least: the BFGS method, with bounds and with a known curvature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from verax.analyses.units import dot
from verax.inputs.arrays import Floats

# Every number fitted is held to its value for "unchanged" by this, against the sum of all losses: as much as
# a fraction of one row. It makes fits unique and keeps those of a class that never happens finite.
RIDGE = 0.01
# The first temperatures tried, as logarithms of their inverse; some rules have a flat part far from the best.
FIRST = (-2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0)
WIDEST = 6.0
# Of many numbers: how many steps are remembered.
_REMEMBERED, _MANY_GAIN = 12, 1e-9
# Relative precision of the mean loss at which the search ends, far below its standard error.
_ITERATIONS, _GAIN, _FLAT, _HALVINGS, _TURNS = 500, 1e-11, 1e-7, 40, 100
# A step that is known to leave no more than this to gain is the last, and is not looked at.
_LEFT, _MANY_LEFT = 1e-14, 1e-11


def smallest(
    objective: Callable[[Floats], tuple[float, Floats]],
    start: Floats,
    bounds: tuple[Floats, Floats],
    inverse: Floats | None,
) -> Floats:
    """The smallest place of a function within bounds, by the BFGS method; `inverse` is that of its curvature.

    There are few numbers, so this takes less time than calling a library, whose threads wait for each other.
    """
    x = np.clip(start, *bounds)
    value, slope = objective(x)
    known, sure, gained = inverse is not None, False, 0.0
    inverse = np.eye(len(x)) / max(1.0, float(np.linalg.norm(slope))) if inverse is None else inverse
    for _ in range(_ITERATIONS):
        # Numbers at their bounds that would leave them stay.
        free = ~(((x <= bounds[0]) & (slope > 0)) | ((x >= bounds[1]) & (slope < 0)))
        if np.abs(slope[free]).max(initial=0.0) <= _FLAT:
            break
        along = _step_within(slope, inverse, (bounds[0] - x, bounds[1] - x))
        fall = float(along @ slope)
        if sure and _left(fall, gained) <= _LEFT * max(abs(value), 1.0):
            return x + along
        there = _lower(objective, x, along, value, fall)
        if there is None:
            break
        moved, lower, steep = there
        step, change, gained = moved - x, steep - slope, value - lower
        x, value, slope = there
        sure = known and _as_expected(gained, fall)
        if gained <= _GAIN * max(abs(value), 1.0):
            break
        bend = float(step @ change)
        if bend > 0:
            if not known:
                inverse, known = np.eye(len(x)) * (bend / float(change @ change)), True
            turned = inverse @ change
            factor = (1 + float(change @ turned) / bend) / bend
            across = np.outer(step, turned) / bend
            inverse = inverse + factor * np.outer(step, step) - across - across.T
    return x


def _step_within(slope: Floats, inverse: Floats, room: tuple[Floats, Floats]) -> Floats:
    """The step within `room` that lowers the quadratic model of a function most, by the active-set method.

    Every turn lowers the model, so a search goes down even if the turns do not suffice.
    """
    free_step, step = -inverse @ slope, np.zeros(len(slope))
    bound = np.zeros(len(slope), bool)
    for _ in range(_TURNS):
        # The force that holds numbers at their bounds moves the others.
        force, there = np.zeros(0), free_step
        if bound.any():
            force = np.linalg.solve(inverse[np.ix_(bound, bound)], (step - free_step)[bound])
            there = free_step + inverse[:, bound] @ force
        move = np.where(bound, 0.0, there - step)
        ends = np.where(move < 0, *room)
        share = np.divide(ends - step, move, out=np.full(len(step), np.inf), where=move != 0)
        first = int(np.argmin(share))
        if share[first] < 1:
            step = step + share[first] * move
            step[first], bound[first] = ends[first], True
            continue
        step = np.where(bound, step, there)
        if not len(force):
            break
        outwards = np.zeros(len(step))
        outwards[bound] = np.where(step <= room[0], 1.0, -1.0)[bound] * force
        if outwards.min() >= 0:
            break
        bound[np.argmin(outwards)] = False
    return step


def _as_expected(gained: float, fall: float) -> bool:
    """Whether a step gained at least half of what the curvature says, so that the curvature is about right.

    Parameters
    ----------
    fall : float
        The derivative of the function along the step, of which the curvature takes half back.
    """
    return gained >= -0.25 * fall


def _left(fall: float, gained: float) -> float:
    """The gain left after a step, about: the same share of its own gain as the last step left of its gain."""
    return (0.5 * fall) ** 2 / gained if gained > 0 else np.inf


def _lower(
    objective: Callable[[Floats], tuple[float, Floats]],
    x: Floats,
    along: Floats,
    value: float,
    fall: float,
) -> tuple[Floats, float, Floats] | None:
    """The first point in a direction, half as far each time, that is low enough, with value and gradient."""
    size = 1.0
    for _ in range(_HALVINGS):
        moved = x + size * along
        lower, steep = objective(moved)
        if lower <= value + 1e-4 * size * fall:
            return moved, lower, steep
        size /= 2
    return None


def smallest_of_many(
    objective: Callable[[Floats], tuple[float, Floats]], start: Floats, scaled: Callable[[Floats], Floats]
) -> Floats:
    """The smallest place of a function of many numbers, by the limited-memory BFGS method.

    `scaled` multiplies a gradient by the inverse of what the curvature is near. The search ends sooner than
    that for few numbers: the loss of many is known less precisely.
    """
    x = start
    value, slope = objective(x)
    past: list[tuple[Floats, Floats, float]] = []
    sure, gained = False, 0.0
    for _ in range(_ITERATIONS):
        along = -_turned(slope, past, scaled)
        fall = dot(along, slope)
        if sure and _left(fall, gained) <= _MANY_LEFT * max(abs(value), 1.0):
            return x + along
        there = _lower(objective, x, along, value, fall)
        if there is None:
            break
        moved, lower, steep = there
        step, change, gained = moved - x, steep - slope, value - lower
        x, value, slope = there
        sure = _as_expected(gained, fall)
        if gained <= _MANY_GAIN * max(abs(value), 1.0):
            break
        bend = dot(step, change)
        if bend > 0:
            past = [*past[1 - _REMEMBERED :], (step, change, bend)]
    return x


def _turned(
    slope: Floats, past: list[tuple[Floats, Floats, float]], scaled: Callable[[Floats], Floats]
) -> Floats:
    """The gradient times the inverse of the curvature that past steps have seen."""
    left, shares = slope.copy(), []
    for step, change, bend in reversed(past):
        shares.append(dot(step, left) / bend)
        left -= shares[-1] * change
    turned = scaled(left)
    for (step, change, bend), share in zip(past, reversed(shares), strict=True):
        turned += (share - dot(change, turned) / bend) * step
    return turned
