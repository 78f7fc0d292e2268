"""What the adapters for training loops require of a rule."""

from __future__ import annotations

from verax.errors import RuleError
from verax.scores.base import Rule
from verax.scores.registry import parse


def trainable(rule: Rule | str) -> Rule:
    """The rule, given as such or as a text, if a model can be trained by it.

    Parameters
    ----------
    rule : Rule or str
        The scoring rule, or its name.

    Returns
    -------
    Rule
        The rule.

    Raises
    ------
    RuleError
        If the rule has no gradient.

    Examples
    --------
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
    """Whether the loss changes as probabilities do while the most likely class stays the same.

    Parameters
    ----------
    rule : Rule
        The scoring rule.

    Returns
    -------
    bool
        False for rules such as zero-one.

    Examples
    --------
    >>> import verax as vx
    >>> from verax.adapters.training import is_differentiable
    >>> is_differentiable(vx.brier), is_differentiable(vx.zero_one)
    (True, False)
    """
    here, there = rule.by_outcome([[0.5, 0.3, 0.2], [0.52, 0.29, 0.19]]).tolist()
    return bool(here != there)
