"""Diagrams that show more than a number: of a rule, of many models, of all proper scores.

>>> import verax as vx
>>> vx.diagrams.landscape("rps", truth=[0.5, 0.2, 0.3]).minimiser.tolist()
[0.5, 0.2, 0.3]
"""

from __future__ import annotations

from verax.analyses.calibration.score_map import score_map
from verax.wings.decide.murphy import murphy
from verax.wings.theory.landscape import landscape

__all__ = ["landscape", "murphy", "score_map"]
