"""Models that answered different questions, estimated jointly: loss = model + question + error.

Weighted least squares, with the effects of questions absorbed: each question adds to a matrix of models by
models, so the sums of parts merge. A second pass turns every question into pseudo-losses, one per model.
Their means are the estimates, and their differences have the influence of the question on the differences
of the estimates. So paired sums of pseudo-losses give standard errors clustered by question, or by groups.
Where every model answered every question, pseudo-losses are the losses themselves. Elsewhere residuals are
those with the question left out (jackknife), because a fit to few shared questions follows each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.comparison.answers import some_rows, table_of, weights_of
from verax.analyses.comparison.paired import OF_RULE, ColumnRecipe, PairedSums
from verax.common.specs import Array, Number
from verax.common.summaries import Summary, merges
from verax.errors import InputError, join, passing
from verax.inputs.arrays import Bools, Floats
from verax.inputs.handles import Part, Recipe
from verax.inputs.scored import Baseline
from verax.scores.base import Rule
from verax.scores.registry import name_of

# Numbers that are computed at a time, and the least share of a residual that a question leaves.
_NUMBERS, _LEAST = 2**21, 0.1
# Components and models of a component that an error names.
_SHOWN = 4


class JointSums(Summary, kind="joint sums"):
    """The normal equations of model effects.

    Attributes
    ----------
    laplacian : array of shape (M, M)
        How often models meet: the matrix of the normal equations.
    right : array of shape (M,)
        Sums of the losses minus the mean of their question.
    shares : array of shape (M,)
        For each model the weight of its questions, each divided by the number of models that answered it.
    weight : float
        The weight of all questions.
    total : float
        The weighted sum of the mean loss of each question.
    """

    laplacian: Floats = merges(Array("float64", "models", "models"))
    right: Floats = merges(Array("float64", "models"))
    shares: Floats = merges(Array("float64", "models", least=0))
    weight: float = merges(Number("add", least=0))
    total: float = merges(Number("add"))

    @property
    def components(self) -> list[list[int]]:
        """Models that some chain of shared questions connects."""
        left, found = set(range(len(self.right))), []
        while left:
            reached, border = set[int](), {min(left)}
            while border:
                reached |= border
                near = np.flatnonzero((self.laplacian[sorted(border)] < 0).any(axis=0)).tolist()
                border = set(near) - reached
            found.append(sorted(reached))
            left -= reached
        return found


@dataclass(frozen=True)
class JointRecipe(Recipe[JointSums], cases=True):
    """The normal equations of some questions."""

    models: tuple[str, ...]
    rule: Rule

    def sizes(self, known: Any) -> dict[str, int]:
        """The number of models."""
        return {"models": len(self.models)}

    def take(self, part: Part) -> JointSums:
        """Of some rows."""
        losses, known, _ = table_of(part, self.models, self.rule)
        infinite = np.isinf(losses) & known
        if infinite.any():
            name = self.models[int(np.argmax(infinite.any(axis=0)))]
            raise InputError(
                "cannot be estimated jointly where losses are infinite",
                argument="missing",
                found=f"{name!r} has {int(infinite.sum()):,} of them by {name_of(self.rule)}",
                remedies=[passing("for a bounded rule", rule="brier")],
            )
        w = weights_of(part)
        mean, n = question_means(losses, known)
        some = n > 0
        share = np.divide(known, n[:, None], where=some[:, None], out=np.zeros(known.shape))
        centred = np.where(known, losses - mean[:, None], 0.0)
        weighted = share * w[:, None]
        return JointSums(
            np.diag((known * w[:, None]).sum(axis=0)) - weighted.T @ known,
            w @ centred,
            weighted.sum(axis=0),
            float(w[some].sum()),
            float(w @ mean),
        )


def question_means(losses: Floats, known: Bools) -> tuple[Floats, Floats]:
    """The mean loss of each question over the models that answered it (0 where none did), and how many."""
    n = known.sum(axis=1)
    total = np.where(known, losses, 0.0).sum(axis=1)
    return np.divide(total, n, where=n > 0, out=np.zeros(len(n))), n.astype(float)


@dataclass(frozen=True)
class Effects:
    """The joint estimate.

    Attributes
    ----------
    models : tuple of str
        The models.
    effects : array of shape (M,)
        The effect of each model on the loss, up to a constant.
    means : array of shape (M,)
        The estimated mean loss of each model over all questions.
    inverse : array of shape (M, M)
        The pseudoinverse of the matrix of the normal equations.
    shares : array of shape (M,)
        The weight of each model in the mean over questions.
    weight : float
        The weight of all questions.
    shift : array of shape (M,)
        What is added to pseudo-losses, so that their means are the estimates.
    """

    models: tuple[str, ...]
    effects: Floats
    means: Floats
    inverse: Floats
    shares: Floats
    weight: float
    shift: Floats

    @classmethod
    def of(cls, sums: JointSums, models: tuple[str, ...]) -> Effects:
        """Solve the normal equations; models that no chain of questions connects are refused."""
        parts = sums.components
        if len(parts) > 1:
            named = [
                join([*(models[i] for i in own[:_SHOWN]), *(["others"] if len(own) > _SHOWN else [])])
                for own in parts[:_SHOWN]
            ]
            raise InputError(
                "cannot be estimated jointly: models must be connected by shared questions",
                argument="missing",
                found=f"there are {len(parts)} sets without a shared question: {'; '.join(named)}",
                remedies=[passing("to compare the pairs that share questions", missing="pairwise")],
            )
        # Effects have a constant of their own: the matrix is singular in one direction.
        m = len(models)
        scale = float(np.trace(sums.laplacian)) / m or 1.0
        inverse = np.asarray(np.linalg.inv(sums.laplacian + scale / m), float) - 1 / (scale * m)
        effects = inverse @ sums.right
        shares = sums.shares / sums.weight
        means = effects + sums.total / sums.weight - shares @ effects
        return cls(models, effects, means, inverse, shares, sums.weight, np.zeros(m))

    def pseudo_losses(self, losses: Floats, known: Bools, weights: Floats) -> Floats:
        """(N, M) pseudo-losses of questions that some model answered."""
        mean, n = question_means(losses, known)
        own = mean - (known @ self.effects) / n
        residual = np.where(known, losses - self.effects - own[:, None], 0.0)
        step = max(1, _NUMBERS // len(self.models) ** 2)
        for start in range(0, len(residual), step):
            rows = slice(start, start + step)
            residual[rows] = self._left_out(residual[rows], known[rows], weights[rows])
        moved = residual @ self.inverse
        centre = float((self.means - self.effects)[0])
        return (
            self.means
            + self.shift
            + self.weight * (moved - (moved @ self.shares)[:, None])
            + (own - centre)[:, None]
        )

    def _left_out(self, residual: Floats, known: Bools, weights: Floats) -> Floats:
        """Residuals as if each question had been left out: fits follow questions that few others check.

        They are scaled so that those of questions that all models answered do not change where all did.
        """
        part = known / known.sum(axis=1, keepdims=True)
        centring = known[:, :, None] * np.eye(known.shape[1]) - part[:, :, None] * known[:, None, :]
        leverage = weights[:, None, None] * (centring @ self.inverse @ centring)
        # A question that alone connects models has a leverage of 1, and says nothing about errors.
        value, vector = np.linalg.eigh(np.eye(known.shape[1]) - leverage)
        turned = np.einsum("qij,qi->qj", vector, residual) / np.maximum(value, _LEAST)
        scale = 1 - weights[:, None] / self.weight
        return np.asarray(scale * np.einsum("qij,qj->qi", vector, turned), float)


@dataclass(frozen=True)
class PseudoRecipe(ColumnRecipe, cases=True):
    """Sums of pseudo-losses, which need the joint estimate."""

    effects: Effects
    rule: Rule

    def take(self, part: Part) -> PairedSums:
        """Of the questions that some model answered."""
        _, known, _ = table_of(part, self.effects.models, self.rule)
        return super().take(some_rows(part, known.any(axis=1)))

    def _columns(self, part: Part) -> Mapping[str, Floats]:
        losses, known, _ = table_of(part, self.effects.models, self.rule)
        return {
            OF_RULE.format(name_of(self.rule)): self.effects.pseudo_losses(losses, known, weights_of(part))
        }


@dataclass(frozen=True)
class BaselineRecipe(ColumnRecipe, cases=True):
    """Baseline scores of one model: its loss minus that of the same probability for every class."""

    model: str
    rule: Rule

    def take(self, part: Part) -> PairedSums:
        """Of the questions that the model answered."""
        _, known, _ = table_of(part, (self.model,), self.rule)
        return super().take(some_rows(part, known[:, 0]))

    def _columns(self, part: Part) -> Mapping[str, Floats]:
        rows: Any = part.models[self.model]
        gaps = rows.losses(self.rule) - rows.losses(Baseline(self.rule))
        return {OF_RULE.format(name_of(self.rule)): gaps[:, None]}


@dataclass(frozen=True)
class PeerRecipe(ColumnRecipe, cases=True):
    """Peer scores of one model: its loss minus the mean loss of the others, where others answered."""

    models: tuple[str, ...]
    model: str
    rule: Rule

    def take(self, part: Part) -> PairedSums:
        """Of the questions that the model and some other answered."""
        _, known, _ = table_of(part, self.models, self.rule)
        return super().take(
            some_rows(part, known[:, self.models.index(self.model)] & (known.sum(axis=1) > 1))
        )

    def _columns(self, part: Part) -> Mapping[str, Floats]:
        losses, known, _ = table_of(part, self.models, self.rule)
        i = self.models.index(self.model)
        others = known.copy()
        others[:, i] = False
        mean, _ = question_means(losses, others)
        return {OF_RULE.format(name_of(self.rule)): (losses[:, i] - mean)[:, None]}
