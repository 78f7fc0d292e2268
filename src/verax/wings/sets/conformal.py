"""`conformal`: sets with a guaranteed coverage, by split conformal prediction."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Unpack

import numpy as np

from verax.analyses.stored import StoredAsJson, read_stored
from verax.analyses.unitsums import check_weight
from verax.common.paths import as_path
from verax.common.strictjson import number
from verax.common.texts import percent
from verax.display.tables import Tabled
from verax.errors import InputError, show
from verax.inference.findings import Claim, Finding, NextStep, WithVerdict
from verax.inference.intervals import Interval, check_seed
from verax.inputs.arrays import Bools, Floats
from verax.inputs.forecasts import check_same_classes, new_rows, other_classes
from verax.inputs.groups import check_several
from verax.inputs.handles import Handle, refuse_lists
from verax.inputs.memory import SetHandle, open_rows
from verax.inputs.options import ForecastOptions, RowOptions, reads
from verax.inputs.sets.rows import check_level
from verax.inputs.sets.sets import sets_made_by
from verax.inputs.skipping import MaySkip
from verax.scores.base import Rule
from verax.wings.sets.coverage import CoverageRange, everything, range_of_groups, range_of_rows
from verax.wings.sets.quantiles import (
    GroupRecipe,
    InsideRecipe,
    Nonconformity,
    ScoreCounts,
    ScoreRecipe,
)

FORMAT, VERSION = "verax conformal", 2


@dataclass(frozen=True, repr=False, eq=False)
class Conformal(StoredAsJson, WithVerdict, Tabled, MaySkip):
    """A threshold on a nonconformity score: a class is in the set if its score is at most the threshold.

    Made by `conformal`, or by `Conformal.load` from a file.

    Attributes
    ----------
    level : float
        The coverage that the sets claim.
    score : Nonconformity
        The nonconformity score.
    threshold : float
        The largest score in a set; infinite where there are too few rows, and all classes are in every set.
    n_rows : int
        The number of calibration rows that have weight.
    n_groups : int or None
        The number of groups; None where rows are independent.
    n_classes : int
        The number of classes, K.
    classes : tuple or None
        The names of the classes.
    within : float
        By how much the threshold may be too large, where scores were counted in bins.
    range : CoverageRange or None
        The range of the coverage among new rows; None where a file of 0.3 does not have it.
    notes : tuple of str
        Notes on the construction.

    Examples
    --------
    >>> import verax as vx
    >>> found = vx.conformal([0, 1, 1, 0] * 10, [0.2, 0.7, 0.6, 0.4] * 10, level=0.8)
    >>> round(found.threshold, 6), found.n_rows
    (0.4, 40)
    """

    level: float
    score: Nonconformity
    threshold: float
    n_rows: int
    n_groups: int | None
    n_classes: int
    classes: tuple[Hashable, ...] | None
    within: float = 0.0
    range: CoverageRange | None = None
    notes: tuple[str, ...] = ()
    _kind = FORMAT, VERSION
    # Sets know how they are made: all claim the level.
    states_mass: ClassVar[bool] = False

    def mask(self, p: Floats) -> Bools:
        """The sets of valid distributions, as a table with a column per class.

        Parameters
        ----------
        p : array of shape (N, K)
            Valid distributions.

        Returns
        -------
        bool array of shape (N, K)
            True for the members.
        """
        if not isinstance(p, np.ndarray) or p.ndim != 2 or p.dtype.kind != "f":
            raise InputError("must be a table of distributions", argument="p", kind="type", found=show(p))
        if p.shape[1] != self.n_classes:
            raise other_classes(self.n_classes, p.shape[1])
        return self.score.members(p, self.threshold)

    @reads
    def apply(self, p: object, **read: Unpack[ForecastOptions]) -> Any:
        """The sets of new rows.

        Parameters
        ----------
        p : array_like of shape (N, K) or (N,), or Handle
            Forecasts: probabilities of the K classes; for two classes, one column with those of
            class 1 is enough. Or predictions that `scan` has opened.
        **read

        Returns
        -------
        Sets or Handle
            The sets. Of a handle, a handle on sets, which `evaluate_sets` judges.

        Examples
        --------
        >>> import verax as vx
        >>> found = vx.conformal([0, 1, 1, 0] * 10, [0.2, 0.7, 0.6, 0.4] * 10, level=0.8)
        >>> found.apply([[0.9, 0.1], [0.5, 0.5], [0.6, 0.4]]).to_labels()
        [(0,), (), (0,)]
        """
        if isinstance(p, Handle):
            refuse_lists(p)
            if p.n_classes != self.n_classes:
                raise other_classes(self.n_classes, p.n_classes)
            if self.score.ordinal:
                check_same_classes(p.classes, self.classes)
            return SetHandle(p.in_order() if self.score.ordinal else p, self)
        return sets_made_by(self, new_rows(p, fitted=(self.n_classes, self.classes), **read))

    @property
    def expected_coverage(self) -> tuple[float, float]:
        """The range of the coverage among new rows: 95 % of calibration samples of this size give one there.

        For scores without ties and rows of equal weight the coverage follows a beta distribution. Weights and
        groups change how many rows tell as much (`range.effective`). Of scores that tie at the threshold the
        upper end is that of Clopper and Pearson.
        """
        return (0.0, 1.0) if self.range is None else (self.range.low, self.range.high)

    def _findings(self) -> list[Finding]:
        # With groups the guarantee is for rows of new groups; cases of several raters are groups of one row.
        if self.n_groups in (None, self.n_rows):
            new, calibration = "new rows", f"the {self.n_rows:,} calibration rows"
        else:
            new, calibration = "rows of new groups", f"the {self.n_groups:,} calibration groups"
        if math.isinf(self.threshold):
            text = (
                f"With {calibration}, no threshold promises coverage of {percent(self.level, 1)}: every set "
                "has all classes."
            )
            return [Finding(Claim.TOO_FEW, text, step=NextStep("calibrate on more rows"))]
        text = (
            f"The sets cover {new} with a probability of at least {percent(self.level, 1)}, if these are "
            f"exchangeable with {calibration}"
        )
        low, high = self.expected_coverage
        known, numbers = self.range, {"coverage": (self.level, Interval(low, high, method="beta"))}
        step = NextStep("judge the sets on other rows", "vx.evaluate_sets(y_new, conformal.apply(p_new))")
        if known is None:
            return [Finding(Claim.COVERS, f"{text}.", step=step)]
        text += "; 95% of such samples give a coverage of "
        if known.tied:
            text += f"at least {percent(low, 1)}, "
            text += f"and at most {percent(high, 1)} because scores tie at the threshold."
        else:
            text += f"{percent(low, 1)} to {percent(high, 1)}."
        return [Finding(Claim.COVERS, text, numbers=numbers, caution=known.caution, step=step)]

    # ---- out ---------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Conformal:
        """Read what `save` wrote.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Conformal
            The same predictor.
        """
        return cls(**read_stored(as_path(path), (FORMAT, VERSION), "conformal predictor", _fields))

    def _heading(self) -> str:
        groups = "" if self.n_groups is None else f", {self.n_groups:,} groups"
        return (
            f"verax conformal: level {self.level:g}, score {self.score.name} ({self.score.title})\n"
            f"{self.n_rows:,} calibration rows{groups}{self._worth}, {self.n_classes:,} classes; "
            f"threshold {self.threshold:.6g}"
        )

    @property
    def _worth(self) -> str:
        """How many independent rows of equal weight tell as much, where it is another number."""
        if self.range is None or round(self.range.effective) == self.n_rows:
            return ""
        return f" (worth {self.range.effective:,.0f} independent ones)"

    def _frame(self) -> dict[str, list[Any]]:
        facts = {"level": self.level, "score": self.score.name, "threshold": self.threshold}
        low, high = self.expected_coverage
        worth = self.n_rows if self.range is None else self.range.effective
        facts |= {"n_rows": self.n_rows, "n_effective": worth, "coverage_low": low, "coverage_high": high}
        return {name: [value] for name, value in facts.items()}

    def _notes(self) -> list[str]:
        cautioned = [] if self.range is None or not self.range.caution else [self.range.caution]
        return [*(f"Caution: {text}." for text in cautioned), *self.notes, *self.remarks]


def _fields(stored: dict[str, Any]) -> dict[str, Any]:
    """The fields of a predictor from what was stored, each checked."""
    whole = {name: stored[name] for name in ("n_rows", "n_classes")}
    for name, value in whole.items():
        if type(value) is not int or value < 1:
            raise ValueError(name)
    groups, classes = stored["n_groups"], stored["classes"]
    if not (groups is None or (type(groups) is int and groups > 0)):
        raise ValueError("n_groups")
    if classes is not None and (len(set(classes)) != whole["n_classes"] or not isinstance(classes, list)):
        raise ValueError("classes")
    level = number(stored["level"])
    if not 0 < level < 1:
        raise ValueError("level")
    threshold, within = number(stored["threshold"]), number(stored["within"])
    if math.isnan(threshold) or not within >= 0:
        raise ValueError("threshold")
    seed = stored["score"]["seed"]
    if type(seed) is not int or seed < 0:
        raise ValueError("seed")
    if not all(isinstance(note, str) for note in stored["notes"]):
        raise ValueError("notes")
    return {
        "level": level,
        "score": Nonconformity.of(str(stored["score"]["name"]), seed),
        "threshold": threshold,
        **whole,
        "n_groups": groups,
        "classes": None if classes is None else tuple(classes),
        "within": within,
        "range": None if stored.get("range") is None else _range_in(stored["range"]),
        "notes": tuple(stored["notes"]),
    }


def _range_in(stored: dict[str, Any]) -> CoverageRange:
    low, high, effective = (number(stored[name]) for name in ("low", "high", "effective"))
    if not 0 <= low <= high <= 1 or not effective > 0:
        raise ValueError("range")
    if type(stored["tied"]) is not bool or type(stored["caution"]) is not str:
        raise ValueError("range")
    return CoverageRange(low, high, effective, stored["tied"], stored["caution"])


@reads
def conformal(
    y: object,
    p: object = None,
    *,
    level: float = 0.9,
    score: Rule | str = "lac",
    seed: int = 0,
    **read: Unpack[RowOptions],
) -> Conformal:
    """Calibrate prediction sets to a coverage, by split conformal prediction.

    The nonconformity of a class says how unusual it would be as the outcome. The threshold is the
    ceil((n + 1) level)-th smallest nonconformity of n calibration rows that the model has not seen. A set
    holds the classes whose nonconformity is at most that. If new rows are exchangeable with the calibration
    rows, their sets cover with a probability of at least the level, on average over rows: not for every
    class or subgroup, which `evaluate_sets` tells.

    - "lac": one minus the probability of the class. The smallest sets on average; doubtful rows may have
      empty ones.
    - "aps": the probability of all likelier classes, plus a share of its own that looks random. Sets adapt
      to how hard a row is, and are larger.
    - a rule: the loss if the class happens. RPS gives sets of ordered classes without gaps.

    With groups, the rows of a group count as much as one row together, and the guarantee is for a row of a
    new group. With weights, a new row has the mean weight.

    Parameters
    ----------
    y
    p : array_like of shape (N, K) or (N,), optional
        Forecasts: probabilities of the K classes; for two classes, one column with those of class 1
        is enough.
    level : float, default 0.9
        The coverage to reach.
    score : {"lac", "aps"} or Rule, default "lac"
        The nonconformity score.
    seed : int, default 0
        Random seed of the shares of "aps".
    **read

    Returns
    -------
    Conformal
        The threshold, ready to `apply` to new rows.

    See Also
    --------
    sets : Judge the sets on rows of their own.

    References
    ----------
    Sadinle, Lei and Wasserman (2019), doi:10.1080/01621459.2017.1395341; Romano, Sesia and Candes (2020),
    arXiv:2006.02544; Lee, Barber and Willett (2023), arXiv:2306.06342 (groups); Vovk (2012), arXiv:1209.2673
    (the range of the coverage)

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet(np.ones(4), 2000)
    >>> y = np.array([rng.choice(4, p=row) for row in p])
    >>> found = vx.conformal(y[:1000], p[:1000], level=0.9)
    >>> f"{vx.evaluate_sets(y[1000:], found.apply(p[1000:])).coverage:.3f}"
    '0.887 (0.866 to 0.906)'
    """
    asked, measure = check_level(level), Nonconformity.of(score, _seed(seed))
    handle = open_rows(y, p, ordered=measure.ordinal, dense=True, single=True, **read)
    model = handle.one_model()
    summaries = handle.summarise({"scores": ScoreRecipe(model, measure), "groups": GroupRecipe(model)})
    counts: ScoreCounts = summaries["scores"]
    uneven = counts.least < counts.most
    shares = summaries["groups"].by_label()
    if shares is not None:
        check_several(len(shares))
        counts = handle.summarise({"scores": ScoreRecipe(model, measure, shares)})["scores"]
    check_weight(counts.weight)
    n = counts.n if shares is None else len(shares)
    # Of decimal levels, (n + 1) * level is a whole number as often as it should be.
    exact = Fraction(asked).limit_denominator(10**6)
    threshold, within = counts.quantile(float(exact), counts.weight / n)
    known = everything(n)
    if math.isfinite(threshold):
        at = counts.at(threshold)
        if shares is None or len(shares) == counts.n == at.n:
            known = range_of_rows(at, float(exact))
        else:
            inside = handle.summarise({"inside": InsideRecipe(model, measure, shares, threshold)})["inside"]
            known = range_of_groups(
                np.array([*(inside.by_label(whole=True) or {}).values()]), at, float(exact)
            )
    return Conformal(
        asked,
        measure,
        threshold,
        counts.n,
        None if shares is None else n,
        handle.n_classes,
        handle.classes,
        within,
        known,
        tuple(_notes(asked, threshold, n, within, grouped=shares is not None, uneven=uneven)),
    ).with_skipped(summaries.skipped)


def _seed(seed: int) -> int:
    check_seed(seed)
    return int(seed)


def _notes(
    level: float, threshold: float, n: int, within: float, *, grouped: bool, uneven: bool
) -> list[str]:
    """Notes on the construction, a sentence each."""
    notes = []
    unit = "groups" if grouped else "rows"
    if math.isinf(threshold):
        need = math.ceil(level / (1 - level) - 1e-9)
        notes.append(
            f"Too few calibration {unit}: {n:,}, and level {level:g} needs at least {need:,}. Every set has "
            "all classes."
            if n < need
            else "The level takes in rows whose score is infinite, so every set has all classes."
        )
    if grouped:
        notes.append(
            "Every group counts the same (group-weighted quantile). The guarantee is for rows of new groups."
        )
    if uneven:
        notes.append("A new row is given the mean weight; with other weights the coverage is approximate.")
    if within > 0:
        notes.append(f"Scores were counted in bins: the threshold is at most {within:.2g} too large.")
    return notes
