"""Requirements of training loops on rules."""

from __future__ import annotations

from verax.errors import RuleError
from verax.scores.base import Rule
from verax.scores.registry import parse


def trainable(rule: Rule | str) -> Rule:
    """Return the rule if a model can be trained with it; otherwise raise an error.

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
    """Whether the loss depends smoothly on the probabilities while the most likely class is fixed.

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
