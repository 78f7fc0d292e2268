"""Requirements of training loops on rules, and heads of networks for ordered classes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from verax.common.checks import check_choice
from verax.errors import InputError, RuleError
from verax.inputs.arrays import Array, kind_of, namespace_of, to_array
from verax.inputs.cumulative import OUTPUTS, Outputs, from_cumulative
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
    here, there = parse(rule).by_outcome([[0.5, 0.3, 0.2], [0.52, 0.29, 0.19]]).tolist()
    return bool(here != there)


# What the outputs of published heads are; the names of `from_cumulative` are allowed as well.
_HEADS: dict[str, Outputs] = {"coral": "exceedance", "corn": "conditional"}
HeadName = Literal["coral", "corn", "cumulative", "exceedance", "conditional"]


@dataclass(frozen=True)
class Head:
    """What the K - 1 outputs of a network for K ordered classes mean; made by `probabilities_of`.

    Parameters
    ----------
    outputs : {"cumulative", "exceedance", "conditional"}
        Whose logits they are, as in `vx.from_cumulative`.

    Examples
    --------
    >>> from verax.adapters.training import probabilities_of
    >>> probabilities_of("coral")([[0.0, 0.0]]).tolist()
    [[0.5, 0.0, 0.5]]
    """

    outputs: Outputs

    def __call__(self, outputs: Any) -> Any:
        """Compute the class probabilities, for metrics and predictions.

        Parameters
        ----------
        outputs : array of shape (N, K - 1)
            The outputs of the network, of NumPy, PyTorch or JAX.

        Returns
        -------
        array of shape (N, K)
            The probabilities. Rows whose thresholds cross are refused.
        """
        return from_cumulative(outputs, outputs=self.outputs, logits=True)

    def logits(self, outputs: Any) -> Any:
        """Compute the logarithms of the class probabilities, which losses take as logits.

        They are exact however small the probabilities are. Rows whose thresholds cross are NaN, and so is
        their loss.

        Parameters
        ----------
        outputs : array of shape (N, K - 1)
            The outputs of the network, of NumPy, PyTorch or JAX.

        Returns
        -------
        array of shape (N, K)
            The logarithms.
        """
        z = to_array(outputs, "outputs")[0]
        if z.ndim != 2 or z.shape[1] < 1 or kind_of(z) not in ("real", "integer"):
            raise InputError(
                "must be numbers, with a column for each threshold: shape (N, K - 1)",
                argument="outputs",
                kind="length",
                found=f"the shape is {tuple(z.shape)}",
            )
        xp = namespace_of(z)

        def log_sigmoid(x: Array) -> Array:
            return -xp.logaddexp(xp.zeros_like(x), -x)

        if self.outputs == "conditional":
            # P(Y > k) is a product of shares, of which the next class takes what is left.
            above = xp.cumulative_sum(log_sigmoid(z), axis=1)
            first, later = log_sigmoid(-z[:, :1]), above[:, :-1] + log_sigmoid(-z[:, 1:])
            return xp.concat([first, later, above[:, -1:]], axis=1)
        z = z if self.outputs == "cumulative" else -z
        # P(Y <= k) - P(Y <= k - 1), without taking a difference of what is nearly equal.
        steps = xp.log(-xp.expm1(z[:, :-1] - z[:, 1:]))
        inner = log_sigmoid(z[:, 1:]) + log_sigmoid(-z[:, :-1]) + steps
        return xp.concat([log_sigmoid(z[:, :1]), inner, log_sigmoid(-z[:, -1:])], axis=1)


def probabilities_of(head: HeadName) -> Head:
    """How the outputs of a head for ordered classes become class probabilities.

    Parameters
    ----------
    head : {"coral", "corn", "cumulative", "exceedance", "conditional"}
        The head: CORAL has the logits of P(Y > k), CORN those of P(Y > k | Y > k - 1), a cumulative link
        those of P(Y <= k).

    Returns
    -------
    Head
        A function of outputs (N, K - 1) that returns probabilities (N, K); its `logits` are for losses.

    Examples
    --------
    >>> import numpy as np
    >>> from verax.adapters.training import probabilities_of
    >>> head = probabilities_of("corn")
    >>> outputs = np.array([[0.0, 0.0]])
    >>> head(outputs).tolist(), np.exp(head.logits(outputs)).round(6).tolist()
    ([[0.5, 0.25, 0.25]], [[0.5, 0.25, 0.25]])
    """
    check_choice("head", head, (*_HEADS, *OUTPUTS))
    return Head(_HEADS.get(head, head))  # type: ignore[arg-type]
