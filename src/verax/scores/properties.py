"""Declared properties of rules, and the numbers of classes for which they hold."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from verax.common.checks import MOST_SETS, check_n_classes


@dataclass(frozen=True)
class Holds:
    """A property that holds for every number of classes K up to a limit.

    All known failures of the rules in verax begin at some K and persist for every larger one, so one
    number is enough: 1 means never, 2 means for two classes only, None means unknown.

    Parameters
    ----------
    up_to : float or None
        The largest number of classes for which it holds: 1 for none, infinity for all, None if unknown.

    Examples
    --------
    >>> import verax as vx
    >>> proper = vx.rules.Holds(2)
    >>> proper.at(2), proper.at(3)
    (True, False)
    """

    up_to: float | None

    ALWAYS: ClassVar[Holds]
    NEVER: ClassVar[Holds]
    BINARY: ClassVar[Holds]
    UNKNOWN: ClassVar[Holds]

    def at(self, n_classes: int) -> bool | None:
        """Whether the property holds for a number of classes.

        Parameters
        ----------
        n_classes : int
            The number of classes, K.

        Returns
        -------
        bool or None
            None if unknown.
        """
        return None if self.up_to is None else check_n_classes(n_classes, most=MOST_SETS) <= self.up_to

    def __and__(self, other: Holds) -> Holds:
        if self.up_to is None or other.up_to is None:
            known = [h.up_to for h in (self, other) if h.up_to is not None]
            return Holds.NEVER if 1 in known else Holds.UNKNOWN
        return Holds(min(self.up_to, other.up_to))

    def __str__(self) -> str:
        match self.up_to:
            case None:
                return "unknown"
            case 1:
                return "no"
            case 2:
                return "K=2 only"
            case limit if limit == float("inf"):
                return "yes"
            case limit:
                return f"K<={limit:.0f} only"


Holds.ALWAYS = Holds(float("inf"))
Holds.NEVER = Holds(1)
Holds.BINARY = Holds(2)
Holds.UNKNOWN = Holds(None)


@dataclass(frozen=True)
class Properties:
    """The declared properties of a rule, each with the numbers of classes for which it holds.

    Attributes
    ----------
    proper : Holds
        No forecast has a smaller expected loss than the truth.
    strictly_proper : Holds
        Every other forecast has a larger expected loss than the truth.
    local : Holds
        The loss depends on the forecast only through the probability of the outcome.
    symmetric : Holds
        Relabelling the classes, in forecast and outcome alike, changes nothing.
    distance_sensitive : Holds
        Moving probability away from the outcome, on one side of it, always costs.
    superior : Holds
        Every forecast whose unique mode is the outcome beats every one whose mode is not.
    bounded : Holds
        The loss has a finite upper bound.

    Examples
    --------
    >>> import verax as vx
    >>> vx.sa_rps.properties.proper
    Holds(up_to=2)
    """

    proper: Holds
    strictly_proper: Holds
    local: Holds
    symmetric: Holds
    distance_sensitive: Holds
    superior: Holds
    bounded: Holds

    def at(self, n_classes: int) -> dict[str, bool | None]:
        """Return every property for a number of classes.

        Parameters
        ----------
        n_classes : int
            The number of classes, K.

        Returns
        -------
        dict of str to bool or None
            Whether it holds, by name; None if unknown.

        Examples
        --------
        >>> import verax as vx
        >>> vx.brier.properties.at(3)["superior"]
        False
        """
        return {f.name: getattr(self, f.name).at(n_classes) for f in fields(self)}

    def __str__(self) -> str:
        return "\n".join(f"{f.name.replace('_', ' '):<20}{getattr(self, f.name)}" for f in fields(self))
