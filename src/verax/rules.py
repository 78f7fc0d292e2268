"""The classes of rules, to set parameters, test with `isinstance` and derive your own, and their registry.

>>> import verax as vx
>>> isinstance(vx.pbs, vx.rules.Penalized), vx.rules.RULES["rps"] == vx.rules.RPS()
(True, True)
"""

from __future__ import annotations

from verax.scores.base import Rule
from verax.scores.combinators import Padded, Penalized
from verax.scores.grades import Grade
from verax.scores.gradients.logits import expected_hessian
from verax.scores.properties import Holds, Properties
from verax.scores.ranges import ThresholdBrier
from verax.scores.registry import RULES
from verax.scores.rules import RPS, AbsRPS, Brier, Log, RankedLog, SaRPS, Spherical, ZeroOne
from verax.scores.sets import LevelSet, SetRule, Winkler

__all__ = [
    "RPS",
    "RULES",
    "AbsRPS",
    "Brier",
    "Grade",
    "Holds",
    "LevelSet",
    "Log",
    "Padded",
    "Penalized",
    "Properties",
    "RankedLog",
    "Rule",
    "SaRPS",
    "SetRule",
    "Spherical",
    "ThresholdBrier",
    "Winkler",
    "ZeroOne",
    "expected_hessian",
]
