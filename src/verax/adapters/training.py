"""What the adapters for training loops require of a rule."""

from __future__ import annotations

from verax.errors import RuleError
from verax.scores.base import Rule
from verax.scores.registry import parse


def trainable(rule: Rule | str) -> Rule:
    """The rule, given as such or as a text, if a model can be trained by it.

    >>> from verax.adapters.training import trainable
    >>> trainable("rps")
    rps
    """
    rule = parse(rule)
    if not is_differentiable(rule):
        raise RuleError(
            f"A training loss must change with the probabilities, and {rule} depends only on which class is "
            "most likely. Train by a strictly proper rule, such as brier, and use this one as a metric."
        )
    return rule


def is_differentiable(rule: Rule) -> bool:
    """Whether the loss changes as probabilities do while the most likely class stays the same."""
    here, there = rule.by_outcome([[0.5, 0.3, 0.2], [0.52, 0.29, 0.19]]).tolist()
    return bool(here != there)
