"""Models that answered different questions, estimated on all of them.

The mean of a model over all questions is that of its losses and, where it has none, of fitted losses. A loss
is expected to be g(model + difficulty). The difficulty of a question is a sum over the models that answered
it, each divided by their number. So question sets need not be random: who was asked says something about the
question, and the answers of the others tell what. For grades g is logistic (quasi-likelihood), so that fitted
losses stay in their range. For losses of forecasts g is the identity, unless a mean would then leave the
range of the rule. With it, differences of models are those of least squares with a free effect of
every question (Mundlak 1978, doi:10.2307/1913646).

Questions that the same models answered are equally difficult, so the fit needs sums by set of models only,
and the sums of parts merge. A second pass turns every question into pseudo-losses, one per model: its loss,
or the fitted one, plus the influence of the question on all fitted losses. Their means are the estimates, and
paired sums of them give standard errors clustered by question, or by groups. Where every model answered
every question they are the losses. Residuals are those with the question left out (jackknife), because a fit
to few shared questions follows each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from verax.analyses.comparison.answers import some_rows, table_of, weights_of
from verax.analyses.comparison.paired import OF_RULE, ColumnRecipe, PairedSums
from verax.common.summaries import Summary, merges
from verax.engines.clusters import ByLabel, GroupLabels, sums_by_label
from verax.errors import InputError, join, passing
from verax.inputs.arrays import Array, Bools, Floats
from verax.inputs.handles import Part, Recipe
from verax.inputs.rows import Baseline
from verax.scores.base import Rule
from verax.scores.grades import Grade
from verax.scores.registry import name_of

# Numbers that are computed at a time, and the least share of a residual that a question leaves.
_NUMBERS, _LEAST = 2**21, 0.1
# Components and models of a component that an error names.
_SHOWN = 4
# The search for effects: steps, the longest of them, the score at which it ends, and the curvature, relative
# to the largest, below which effects are not told apart.
_STEPS, _LONGEST, _ENDS, _FLAT = 100, 4.0, 1e-12, 1e-11


class JointSums(Summary, kind="losses by answering models"):
    """Sums over the questions that the same models answered.

    Attributes
    ----------
    sets : array of shape (S,)
        Which models have a loss, as a text of a 1 or 0 for each.
    sums : array of shape (S, 1 + M)
        The weight of the questions, and the weighted sum of the losses of each model.
    """

    sets: Array = merges(GroupLabels(ids=0))
    sums: Floats = merges(ByLabel("1+models", labels="sets"))

    @property
    def answered(self) -> Bools:
        """(S, M) which models have a loss."""
        n = self.sums.shape[1] - 1
        marks: Array = np.ascontiguousarray(self.sets.astype(f"U{n}")).view("U1")
        return np.asarray(marks == "1").reshape(-1, n)

    @property
    def components(self) -> list[list[int]]:
        """Sets of models that a chain of shared questions connects."""
        answered = self.answered
        meet = answered.T.astype(float) @ answered > 0
        left, components = set(range(answered.shape[1])), []
        while left:
            reached, border = set[int](), {min(left)}
            while border:
                reached |= border
                border = set(np.flatnonzero(meet[sorted(border)].any(axis=0)).tolist()) - reached
            components.append(sorted(reached))
            left -= reached
        return components


@dataclass(frozen=True)
class JointRecipe(Recipe[JointSums], cases=True):
    """Sum losses by the set of models that answered."""

    models: tuple[str, ...]
    rule: Rule

    def sizes(self, known: Any) -> dict[str, int]:
        """The number of models."""
        return {"models": len(self.models)}

    def take(self, part: Part) -> JointSums:
        """Summarise one part."""
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
        some = known.any(axis=1)
        losses, known, w = losses[some], known[some], weights_of(part)[some]
        marks = np.ascontiguousarray(np.where(known, "1", "0"))
        sets = marks.view(f"U{len(self.models)}").ravel()
        weighted = np.where(known, losses, 0.0) * w[:, None]
        return JointSums(*sums_by_label(sets, np.column_stack([w, weighted])))


@dataclass(frozen=True)
class Effects:
    """The joint estimate of models and questions.

    Attributes
    ----------
    models : tuple of str
        The models.
    ends : tuple of two floats or None
        The least and the greatest loss, between which losses are logistic; None where they are additive.
    effects : array of shape (2, M)
        The effect of each model, and what each adds to the difficulty of the questions that it answered.
    means : array of shape (M,)
        The estimated mean loss of each model over all questions.
    fitted : array of shape (M,)
        The share of the questions of which the loss of each model is fitted.
    inverse : array of shape (2M, 2M)
        The pseudoinverse of the information on the effects.
    change : array of shape (M, 2M)
        Derivatives of the sum of each model's fitted losses by the effects of models and of questions.
    shift : array of shape (M,)
        What is added to pseudo-losses, so that their means are the estimates.
    """

    models: tuple[str, ...]
    ends: tuple[float, float] | None
    effects: Floats
    means: Floats
    fitted: Floats
    inverse: Floats
    change: Floats
    shift: Floats

    @classmethod
    def of(cls, sums: JointSums, models: tuple[str, ...], rule: Rule, n_classes: int) -> Effects:
        """Fit the effects: logistic for grades, else additive unless that leaves the range of the rule.

        Models that no chain of questions connects are refused.
        """
        parts = sums.components
        if len(parts) > 1:
            named = [
                join(
                    [
                        *(models[i] for i in component[:_SHOWN]),
                        *(["others"] if len(component) > _SHOWN else []),
                    ]
                )
                for component in parts[:_SHOWN]
            ]
            raise InputError(
                "cannot be estimated jointly: models must be connected by shared questions",
                argument="missing",
                found=f"there are {len(parts)} sets without a shared question: {'; '.join(named)}",
                remedies=[passing("to compare the pairs that share questions", missing="pairwise")],
            )
        least, most = rule.bounds(n_classes)
        if not isinstance(rule, Grade):
            additive = cls._of_link(sums, models, None)
            if ((least <= additive.means) & (additive.means <= most)).all() or not np.isfinite(most - least):
                return additive
        return cls._of_link(sums, models, (least, most))

    @classmethod
    def _of_link(cls, sums: JointSums, models: tuple[str, ...], ends: tuple[float, float] | None) -> Effects:
        answered, weight = sums.answered, float(sums.sums[:, 0].sum())
        w = sums.sums[:, :1] / weight
        known, left, share = w * answered, w * ~answered, _shares(answered)
        least, size = _range(ends)
        total = (sums.sums[:, 1:] / weight - least * known) / size
        effects = _fit(known, share, total, logistic=ends is not None)
        _, slope = _fitted(effects, share, logistic=ends is not None)
        inverse = _inverse(_information(known * slope, share))
        mean = np.divide(total, w, where=w > 0, out=np.zeros(total.shape)).sum(axis=1) / answered.sum(axis=1)
        value, slope = _unanswered(effects, share, mean, logistic=ends is not None)
        slope = left * slope
        change = np.hstack([np.diag(slope.sum(axis=0)), slope.T @ share])
        means = least + size * (total.sum(axis=0) + (left * value).sum(axis=0))
        shift = np.zeros(len(models))
        return cls(models, ends, effects, means, left.sum(axis=0), inverse / weight, weight * change, shift)

    def pseudo_losses(self, losses: Floats, known: Bools, weights: Floats) -> Floats:
        """(N, M) pseudo-losses of questions that some model answered."""
        logistic, (least, size), share = self.ends is not None, _range(self.ends), _shares(known)
        scaled = np.where(known, (losses - least) / size, 0.0)
        value, slope = _fitted(self.effects, share, logistic=logistic)
        residual, root = np.where(known, scaled - value, 0.0), np.sqrt(np.where(known, slope, 0.0))
        step = max(1, _NUMBERS // len(self.models) ** 2)
        for start in range(0, len(residual), step):
            rows = slice(start, start + step)
            residual[rows] = self._left_out(residual[rows], root[rows], share[rows], weights[rows])
        scores = np.hstack([residual, share * residual.sum(axis=1)[:, None]])
        mean = scaled.sum(axis=1) / known.sum(axis=1)
        value, slope = _unanswered(self.effects, share, mean, logistic=logistic)
        # The change of the effects without the question, and with them of the fitted losses of the others.
        of_model, of_question = np.hsplit(scores @ self.inverse, 2)
        of_question = of_question if logistic else -of_model
        without_question = slope * (of_model + (share * of_question).sum(axis=1)[:, None])
        moved = np.hstack([of_model, of_question]) @ self.change.T - weights[:, None] * np.where(
            known, 0.0, without_question
        )
        return np.asarray(np.where(known, losses, least + size * value) + size * moved + self.shift)

    def _left_out(self, residual: Floats, root: Floats, share: Floats, weights: Floats) -> Floats:
        """Residuals with each question left out, because fits follow questions with few shared answers."""
        m = len(self.models)
        of_models, of_both = self.inverse[:m, :m], share @ self.inverse[m:, :m]
        difficulty = np.einsum("qi,ij,qj->q", share, self.inverse[m:, m:], share)
        leverage = of_models + of_both[:, :, None] + of_both[:, None, :] + difficulty[:, None, None]
        leverage = weights[:, None, None] * root[:, :, None] * leverage * root[:, None, :]
        # A question that alone connects models has a leverage of 1, and says nothing about errors.
        value, vector = np.linalg.eigh(np.eye(m) - leverage)
        standard = np.divide(residual, root, where=root > 0, out=np.zeros(residual.shape))
        turned = np.einsum("qij,qi->qj", vector, standard) / np.maximum(value, _LEAST)
        return np.asarray(root * np.einsum("qij,qj->qi", vector, turned), float)


def _range(ends: tuple[float, float] | None) -> tuple[float, float]:
    """Offset and divisor that scale losses."""
    return (0.0, 1.0) if ends is None else (ends[0], ends[1] - ends[0])


def _shares(known: Bools) -> Floats:
    """(N, M) shares of each model among those that answered a question."""
    return np.asarray(known / known.sum(axis=1, keepdims=True))


def _fitted(effects: Floats, share: Floats, *, logistic: bool) -> tuple[Floats, Floats]:
    """(N, M) expected losses, and their slopes."""
    value = effects[0] + (share @ effects[1])[:, None]
    if not logistic:
        return value, np.ones(value.shape)
    value = 0.5 + 0.5 * np.tanh(value / 2)
    return value, value * (1 - value)


def _unanswered(effects: Floats, share: Floats, mean: Floats, *, logistic: bool) -> tuple[Floats, Floats]:
    """(N, M) fitted losses of models without an answer, and their slopes.

    Additive losses have a free effect of every question: its mean loss minus the mean effect of the models
    that answered it.
    """
    if logistic:
        return _fitted(effects, share, logistic=True)
    value = effects[0] + (mean - share @ effects[0])[:, None]
    return value, np.ones(value.shape)


def _information(slope: Floats, share: Floats) -> Floats:
    """(2M, 2M) information on the effects, from the weighted slope of each answer."""
    cross = slope.T @ share
    of_difficulty = (share * slope.sum(axis=1)[:, None]).T @ share
    return np.block([[np.diag(slope.sum(axis=0)), cross], [cross.T, of_difficulty]])


def _inverse(information: Floats) -> Floats:
    """The pseudoinverse, because models and difficulties share a constant."""
    return np.asarray(np.linalg.pinv(information, _FLAT, hermitian=True), float)


def _fit(known: Floats, share: Floats, total: Floats, *, logistic: bool) -> Floats:
    """(2, M) effects that solve the quasi-likelihood equations, by Newton's method.

    Effects of a model whose losses are all the least or all the greatest grow without end: the search ends
    where its fitted losses no longer change.
    """
    effects = np.zeros((2, share.shape[1]))
    for _ in range(_STEPS):
        value, slope = _fitted(effects, share, logistic=logistic)
        gap = total - known * value
        score = np.concatenate([gap.sum(axis=0), share.T @ gap.sum(axis=1)])
        if np.abs(score).max() <= _ENDS:
            break
        step = _inverse(_information(known * slope, share)) @ score
        if not logistic:
            return np.asarray(step.reshape(effects.shape))
        effects = effects + (step * min(1.0, _LONGEST / np.abs(step).max())).reshape(effects.shape)
    return effects


@dataclass(frozen=True)
class PseudoRecipe(ColumnRecipe, cases=True):
    """Sum pseudo-losses, which need the joint estimate."""

    effects: Effects
    rule: Rule

    @property
    def follows(self) -> bool:
        return True

    def take(self, part: Part) -> PairedSums:
        """Summarise the questions that some model answered."""
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
        """Summarise the questions that the model answered."""
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
        """Summarise the questions that the model and another one answered."""
        _, known, _ = table_of(part, self.models, self.rule)
        return super().take(
            some_rows(part, known[:, self.models.index(self.model)] & (known.sum(axis=1) > 1))
        )

    def _columns(self, part: Part) -> Mapping[str, Floats]:
        losses, known, _ = table_of(part, self.models, self.rule)
        i = self.models.index(self.model)
        others = known.copy()
        others[:, i] = False
        mean = np.where(others, losses, 0.0).sum(axis=1) / others.sum(axis=1)
        return {OF_RULE.format(name_of(self.rule)): (losses[:, i] - mean)[:, None]}
