"""How probabilities become sets of classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from verax.common.checks import check_number
from verax.errors import InputError, passing
from verax.inputs.arrays import Bools, Floats

# Sums of probabilities that miss a level by less than this reach it.
_ROUNDING = 1e-12


class Members(Protocol):
    """What says which classes a distribution puts into its set.

    `level` is the coverage that all sets claim, None for none; with `states_mass` every set claims the
    probability of its classes.
    """

    @property
    def level(self) -> float | None: ...
    @property
    def states_mass(self) -> bool: ...
    def mask(self, p: Floats) -> Bools: ...


@dataclass(frozen=True)
class Mass:
    """The most likely classes, until their probability reaches the level; of ties the first positions."""

    level: float
    states_mass: ClassVar[bool] = False

    def mask(self, p: Floats) -> Bools:
        """The sets of some rows.

        >>> Mass(0.8).mask(np.array([[0.1, 0.6, 0.3], [0.9, 0.05, 0.05]])).astype(int).tolist()
        [[0, 1, 1], [1, 0, 0]]
        """
        return np.asarray(mass_before(p) < self.level - _ROUNDING)


@dataclass(frozen=True)
class Above:
    """The classes whose probability is above a threshold."""

    threshold: float
    level: ClassVar[None] = None
    states_mass: ClassVar[bool] = True

    def mask(self, p: Floats) -> Bools:
        """The sets of some rows."""
        return np.asarray(p > self.threshold)


def mass_before(p: Floats) -> Floats:
    """The probability of all classes that are likelier than each; of ties the first positions count as that.

    >>> mass_before(np.array([[0.25, 0.5, 0.25]])).tolist()
    [[0.5, 0.0, 0.75]]
    """
    order = np.argsort(-p, axis=1, kind="stable")
    ranked = np.take_along_axis(p, order, axis=1)
    before = np.zeros_like(ranked)
    np.cumsum(ranked[:, :-1], axis=1, out=before[:, 1:])
    found = np.empty_like(before)
    np.put_along_axis(found, order, before, axis=1)
    return found


def check_level(level: object, argument: str = "level") -> float:
    """A claimed coverage; refused unless it lies between 0 and 1."""
    percent = isinstance(level, (int, float)) and 1 < level < 100
    remedies = [passing(**{argument: float(level) / 100})] if percent else []  # type: ignore[arg-type]
    return check_number(argument, level, "must lie between 0 and 1", lambda c: 0 < c < 1, remedies=remedies)


def members_by(level: float | None, threshold: float | None) -> Members | None:
    """How probabilities become sets: by their level, or by a threshold; None where neither is given."""
    if level is not None:
        return Mass(check_level(level))
    return None if threshold is None else Above(check_level(threshold, "threshold"))


def no_way() -> InputError:
    """The error about probabilities of which nobody said how they become sets."""
    return InputError(
        "must be sets; these are probabilities, which state a set for every level",
        argument="sets",
        kind="type",
        remedies=[
            passing("to judge the most likely classes with this probability", level=0.9),
            passing("to judge the classes above this probability", threshold=0.1),
        ],
    )
