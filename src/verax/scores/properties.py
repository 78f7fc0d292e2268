"""What a rule promises, and for how many classes each promise holds."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar


@dataclass(frozen=True)
class Holds:
    """A promise that holds for every number of classes K up to a limit.

    All known failures of the rules in verax begin at some K and go on for every larger one, so one
    number says it all: 1 means never, 2 means for two classes only, None means that it is unknown.
    """

    up_to: float | None

    ALWAYS: ClassVar[Holds]
    NEVER: ClassVar[Holds]
    BINARY: ClassVar[Holds]
    UNKNOWN: ClassVar[Holds]

    def at(self, n_classes: int) -> bool | None:
        """Whether the promise holds for `n_classes` classes; None when unknown."""
        return None if self.up_to is None else n_classes <= self.up_to

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
    proper : no forecast has a smaller expected loss than the truth.
    strictly_proper : every other forecast has a larger one.
    local : the loss depends on the forecast only through the probability of the outcome.
    symmetric : relabelling the classes, in forecast and outcome alike, changes nothing.
    distance_sensitive : moving probability away from the outcome, on one side of it, always costs.
    superior : every forecast whose unique mode is the outcome beats every one whose mode is not.
    bounded : the loss has a finite upper bound.
    """

    proper: Holds
    strictly_proper: Holds
    local: Holds
    symmetric: Holds
    distance_sensitive: Holds
    superior: Holds
    bounded: Holds

    def at(self, n_classes: int) -> dict[str, bool | None]:
        """Every property as True, False or None (unknown) for `n_classes` classes.

        >>> import verax as vx
        >>> vx.brier.properties.at(3)["superior"]
        False
        """
        return {f.name: getattr(self, f.name).at(n_classes) for f in fields(self)}

    def __str__(self) -> str:
        return "\n".join(f"{f.name.replace('_', ' '):<20}{getattr(self, f.name)}" for f in fields(self))
