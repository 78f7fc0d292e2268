"""A recalibration: the method, its held-out gain, how it is shown, and its application to new rows."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from verax.analyses.comparison.result import Comparison
from verax.analyses.stored import StoredAsJson
from verax.analyses.words import alike, probability, said
from verax.common.checks import in_digits, looked_up
from verax.common.faces import Hidden
from verax.common.paths import as_path
from verax.common.texts import percent, percent_span
from verax.display.tables import NO_HEADING, Column, Table, Tabled, interval_head
from verax.errors import InputError, Remedy, show
from verax.inference.findings import Claim, Finding, NextStep, Verdict
from verax.inputs.arrays import Floats, to_array, to_host, widen
from verax.inputs.forecasts import new_rows
from verax.inputs.groups import GroupCount, in_words
from verax.inputs.lists.ragged import Ragged
from verax.inputs.lists.rows import ListRows
from verax.inputs.lists.toplists import TopLists
from verax.inputs.options import ForecastOptions, reads, reads_per_row
from verax.inputs.skipping import MaySkip
from verax.scores.registry import headline_rule, name_of
from verax.wings.recalibrate.forms import CalibrationMap
from verax.wings.recalibrate.lists import ListScaling
from verax.wings.recalibrate.records import BEST, LEVEL, MEANINGS, METHOD_TITLES, Gain, Trial
from verax.wings.recalibrate.storing import FORMAT, VERSION, facts_in

if TYPE_CHECKING:
    from verax.display.figures import Sheet

# The estimate is final when no frequency moves by more than this, or after this number of steps.
_STILL, _STEPS = 1e-10, 10_000


def shifted(p: Floats, old: Floats, new: Floats) -> Floats:
    """Rows for class frequencies `new`, given rows that hold for `old`: Bayes' rule.

    >>> shifted(np.array([[0.5, 0.5]]), np.array([0.5, 0.5]), np.array([0.8, 0.2])).tolist()
    [[0.8, 0.2]]
    """
    factor = np.divide(new, old, out=np.zeros_like(new), where=old > 0)
    moved = p * factor
    total = moved.sum(axis=1, keepdims=True)
    # A row that says only what cannot be has nothing to go by but the new frequencies.
    return np.where(total > 0, moved / np.where(total > 0, total, 1.0), new)


def estimated(p: Floats, old: Floats, weights: Floats | None = None) -> Floats:
    """The class frequencies that make the rows most likely, by the EM algorithm of Saerens et al.

    Parameters
    ----------
    p : array of shape (N, K)
        Rows that hold for the class frequencies `old`, of cases whose outcomes are not known.
    """
    w = np.ones(len(p)) if weights is None else weights / weights.max()
    w = w / w.sum()
    new = old.copy()
    for _ in range(_STEPS):
        before, new = new, w @ shifted(p, old, new)
        if np.abs(new - before).max() <= _STILL:
            break
    return new


class ShownRecalibration(Tabled, MaySkip):
    """The text and tables of a recalibration; its attributes are described there."""

    method: str
    asked: str
    rule: str
    trials: tuple[Trial, ...]
    ordered: bool
    n_rows: int
    n_groups: GroupCount | None
    folds: int
    confidence: float
    calibration_p: float
    notes: tuple[str, ...]

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        raise NotImplementedError

    def trial(self, method: str) -> Trial:
        """One of the methods tried, by name.

        Parameters
        ----------
        method : str
            The name of the method.

        Returns
        -------
        Trial
            Its gain.
        """
        return looked_up({trial.method: trial for trial in self.trials}, method, "trial of")

    @property
    def gain(self) -> Gain:
        """Reduction of the held-out loss by the method that is used."""
        return self.trial(self.method).gain

    @property
    def _of(self) -> str:
        """The name of the rows."""
        return "rows"

    @property
    def helps(self) -> bool:
        """Whether a method is used: the one that passed the test of choices, or that was asked for."""
        return self.method != "none"

    @property
    def verdict(self) -> Verdict:
        """Whether recalibration helps, by how much, and how sure that is."""
        return Verdict([self._undone() if self.method == "none" and self._is_choice else self._done()])

    @property
    def _is_choice(self) -> bool:
        """Whether the method was chosen, not asked for by itself."""
        return self.asked == BEST or ", " in self.asked

    def _done(self) -> Finding:
        """What a method does: that it was chosen, and why; or what the one asked for gains."""
        gain, p = self.gain, None
        if self._is_choice and not math.isnan(self.calibration_p):
            p = self.calibration_p
            claim, text = (
                Claim.HELPS,
                f"The forecasts are not calibrated ({_tested(p)}), and {self._takes()}.",
            )
        else:
            claim = Claim.NO_GAIN
            if gain.share_interval.defined and gain.interval.defined:
                claim = Claim.HELPS if gain.interval.low > 0 else claim
                claim = Claim.HARMS if gain.interval.high < 0 else claim
            text = f"{_capital(self._takes())}."
        return Finding(
            claim,
            text,
            (self.method,),
            {"gain": (gain.share, gain.share_interval), "loss": self.trial(self.method).loss},
            p_value=p,
            level=LEVEL if p is not None else 1 - self.confidence,
            caution=gain.interval.caution,
            step=self._step() if claim == Claim.HELPS else None,
        )

    def _takes(self) -> str:
        """What the method does to the loss of rows that no fit has seen."""
        name, score, gain = METHOD_TITLES[self.method], said(self.rule), self.gain
        if math.isnan(gain.share):
            before, after = self.trials[0].loss, self.trial(self.method).loss
            if math.isinf(after):
                return f"{name} leaves the {score} infinite"
            return f"with {name} the {score} of held-out rows falls from {before:.4g} to {after:.4g}"
        if not gain.share:
            return f"{name} does not change the {score}"
        if gain.unseen_errors:
            rows = f"{self.n_rows:,} {self._of}"
            return f"after {name} all {rows} are right, so none shows what an error would cost"
        does = "takes about {} off" if gain.share > 0 else "adds about {} to"
        return f"{name} {does.format(percent(abs(gain.share)))} the {score} of held-out rows ({_span(gain)})"

    def _step(self) -> NextStep:
        """The call and the command that make this recalibration again, and use or keep it."""
        options: dict[str, str] = {}
        if self.asked != BEST:
            options["method"] = self.method
        if self.rule != name_of(headline_rule(ordered=self.ordered)):
            options["rule"] = self.rule
        given = [*(f"{key}={value!r}" for key, value in options.items()), *["ordered=True"] * self.ordered]
        typed = [f" --{key} {value}" for key, value in options.items()]
        return NextStep(
            f"recalibrate with {METHOD_TITLES[self.method]}",
            f"vx.recalibrate({', '.join(['y', 'p', *given])}).apply(p)",
            f"verax recalibrate {{source}}{''.join(typed)} --save recalibration.json",
        )

    def _undone(self) -> Finding:
        """Why nothing is done, and which method comes closest."""
        best = min(self.trials[1:], key=lambda trial: (math.isnan(trial.loss), trial.loss))
        rows = f"{self.n_rows:,}" if self.sampled is None else "{:,} of {:,}".format(*self.sampled)
        rows, p = f"{rows} {self._of}", self.calibration_p
        if math.isnan(p):
            why = f"with {rows}"
            if self.n_groups is not None:
                why = f"with {in_words(self.n_groups)} calibration cannot be tested"
        elif p > LEVEL:
            why = f"calibration is not rejected ({_tested(p)}, {rows})"
        else:
            helps = f"{rows} do not show that any method helps"
            why = f"the forecasts are miscalibrated ({_tested(p)}), but {helps}"
        closest = "None lowers the held-out loss."
        if best.gain.unseen_errors:
            right = f"all {rows} are right, so none shows what an error would cost"
            closest = f"After {METHOD_TITLES[best.method]} {right}."
        elif best.gain.share > 0:
            gain = f"{percent(best.gain.share)} ({_span(best.gain)})"
            closest = f"Closest: {METHOD_TITLES[best.method]}, {gain} lower loss in cross-validation."
        numbers = {"gain": (best.gain.share, best.gain.share_interval)}
        return Finding(
            Claim.NO_GAIN,
            f"No gain is shown: {why}. {closest}",
            (best.method,),
            numbers,
            p_value=None if math.isnan(p) else p,
            level=LEVEL,
        )

    def _passed_over(self) -> str:
        """Why a method with a larger gain of its own is not chosen; of no method the verdict tells."""
        if not self._is_choice or self.method == "none":
            return ""
        best = min(self.trials[1:], key=lambda trial: (math.isnan(trial.loss), trial.loss))
        if best.method == self.method or math.isnan(best.gain.share):
            return ""
        larger = f"{_capital(METHOD_TITLES[best.method])} gains more ({best.gain})"
        return f"{larger}, but {METHOD_TITLES[self.method]} is simpler and within one standard error."

    def _heading(self) -> str:
        kind = "ordered classes" if self.ordered else "classes"
        groups = "" if self.n_groups is None else f", {in_words(self.n_groups)}"
        rows = f"{self.n_rows:,} {self._of}{groups}, {in_digits(self.n_classes)} {kind}"
        return f"verax recalibration: {rows}; {self.rule} on held-out rows, {self.folds} folds"

    def _tables(self) -> list[Table]:
        def text(of: Callable[[Trial], str]) -> Callable[[Trial], str]:
            """Nothing for what was not recalibrated."""
            return lambda trial: "" if trial.method == "none" else of(trial)

        def spread(trial: Trial) -> str:
            low, high = trial.gain.share_interval
            return f"{100 * low:z.1f} to {100 * high:z.1f}" if trial.gain.share_interval.defined else ""

        def known(value: float, shown: str) -> str:
            return "" if math.isnan(value) else shown

        columns = [
            Column("", NO_HEADING, lambda trial: "->" if trial.method == self.method else "", right=False),
            Column("method", "method", right=False),
            Column("loss", self.rule, ".5f"),
            Column(
                "gain", "gain", text(lambda t: known(t.gain.value, f"{t.gain.value:z.5f}")), _gain("value")
            ),
            Column("low high", value=_gain("interval")),
            Column(
                "share",
                "gain in %",
                text(lambda t: known(t.gain.share, f"{100 * t.gain.share:z.1f}")),
                _gain("share"),
            ),
            Column("", interval_head(self.confidence), text(spread), right=False),
            Column("detail", "fitted to all rows", text(lambda t: t.detail), right=False),
        ]
        return [Table(columns, self.trials)]

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict, its caution, what the method does, and why one that gains more is not chosen."""
        caution = self.gain.interval.caution
        told = f"Caution: {caution}." if caution and self.method != "none" else ""
        does = MEANINGS.get(self.method, "")
        means = f"{_capital(METHOD_TITLES[self.method])} {does}." if does else ""
        return (str(self.verdict), *filter(None, (told, means, self._passed_over())))

    def _notes(self) -> list[str]:
        return [*self.sentences, *self.notes, *self.remarks]


def _span(gain: Gain) -> str:
    ends = gain.share_interval
    if not ends.defined:
        return "without an interval"
    low, high = (ends.low, min(ends.high, 1.0)) if gain.share > 0 else (-ends.high, -ends.low)
    if alike(low, high):
        return "the same in all rows"
    return f"{100 * ends.confidence:g}% CI {percent_span(low, high)}"


def _gain(name: str) -> Callable[[Trial], Any]:
    return lambda trial: getattr(trial.gain, name)


def _tested(p: float) -> str:
    """The p-value with the name of its test: verdicts of calibration have others, one for each claim."""
    text = probability(p)
    return f"score test p {text if text.startswith('<') else f'= {text}'}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


@dataclass(frozen=True, repr=False, eq=False)
class Recalibration(StoredAsJson, ShownRecalibration):
    """A way to better probabilities, and what it gains.

    Made by `recalibrate`, or by `Recalibration.load` from a file.

    Attributes
    ----------
    method : str
        The method that `apply` uses; "none" where no gain is shown.
    asked : str
        The method or methods asked for; "best" for a choice.
    form : CalibrationMap
        The fit to all rows.
    rule : str
        The rule that was minimised and measured.
    trials : tuple of Trial
        All methods tried, "none" first.
    classes : tuple or None
        The names of the columns.
    ordered : bool
        Whether the classes have an order.
    frequencies : array of shape (K,)
        The frequencies of the classes in the rows that it was fitted to.
    n_rows : int
        The number of rows.
    n_groups : int, tuple of int or None
        The number of groups, of each kind; None without groups.
    folds : int
        Number of folds of the cross-validation.
    seed : int
        Random seed of the folds.
    confidence : float
        Confidence level of the intervals.
    calibration_p : float
        The p-value of "the forecasts are calibrated", by which a choice is made; NaN where a method was asked
        for, and where there are too few groups to test it.
    notes : tuple of str
        What else to know.
    comparison : Comparison or None
        The losses on held-out rows, compared by pairs; None after `load`.
    held_out : array of shape (N, K), ListRows or None
        The rows, each recalibrated by a fit that has not seen it; None after `load`. Of top lists the largest
        valid sublists, whose classes are their places.
    columns : tuple of str
        The columns of the file that the probabilities came from; empty where they came from no file.

    Examples
    --------
    >>> import verax as vx
    >>> recalibration = vx.recalibrate([0, 1, 0, 1] * 30, [0.05, 0.9, 0.3, 0.3] * 30, method="temperature")
    >>> recalibration.method, recalibration.n_rows
    ('temperature', 120)
    """

    method: str
    asked: str
    form: CalibrationMap
    rule: str
    trials: tuple[Trial, ...]
    classes: tuple[Hashable, ...] | None
    ordered: bool
    frequencies: Floats
    n_rows: int
    n_groups: GroupCount | None
    folds: int
    seed: int
    confidence: float
    calibration_p: float = math.nan
    notes: tuple[str, ...] = ()
    comparison: Hidden[Comparison | None] = None
    held_out: Hidden[Floats | ListRows | None] = None
    columns: tuple[str, ...] = ()

    _kind = FORMAT, VERSION

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.frequencies)

    # ---- use ---------------------------------------------------------------------------------

    @reads_per_row
    def apply(
        self,
        p: object,
        *,
        frequencies: Sequence[float] | Mapping[Hashable, float] | Literal["estimate"] | None = None,
        **read: Unpack[ForecastOptions],
    ) -> Floats:
        """Recalibrated probabilities, in the shape of `p`; NaN for invalid rows that are to be skipped.

        Parameters
        ----------
        p : array_like of shape (N, K) or (N,)
            Forecasts: probabilities of the K classes; for two classes, one column with those of
            class 1 is enough.
        frequencies : sequence of K floats, mapping or "estimate", optional
            The class frequencies where the forecasts will be used, if they differ from those in the rows that
            this was fitted to (a prior shift): known ones, or estimated from `p` alone by the EM algorithm of
            Saerens, Latinne and Decaestecker (2002), doi:10.1162/089976602753284446.
        **read

        Returns
        -------
        array of the shape of `p`
            The probabilities.

        Examples
        --------
        >>> import verax as vx
        >>> y, p = [0, 1, 0, 1] * 30, [0.05, 0.9, 0.3, 0.3] * 30
        >>> recalibration = vx.recalibrate(y, p, method="prior")
        >>> recalibration.apply([0.5], frequencies=[0.9, 0.1]).round(3).tolist()
        [0.196]
        """
        rows, single = self._read(p, read)
        better: Floats = self.form.apply(rows)
        if frequencies is not None:
            better = shifted(better, self.frequencies, self._new(frequencies, better))
        return better[:, 1] if single else better

    @reads
    def estimate_frequencies(self, p: object, **read: Unpack[ForecastOptions]) -> Floats:
        """The class frequencies among new rows whose outcomes are not known, by EM (see `apply`).

        Parameters
        ----------
        p : array_like of shape (N, K) or (N,)
            Forecasts: probabilities of the K classes; for two classes, one column with those of
            class 1 is enough. Not recalibrated yet.
        **read

        Returns
        -------
        array of shape (K,)
            The frequencies.
        """
        return estimated(self.form.apply(self._read(p, read)[0]), self.frequencies)

    def _read(self, p: object, read: Any) -> tuple[Floats, bool]:
        """Valid rows of probabilities, and whether they were given as one column."""
        if isinstance(p, TopLists):
            raise InputError(
                "must be full distributions, as the rows that this was fitted to",
                argument="p",
                kind="type",
                found="these are top lists",
                remedies=[
                    Remedy("Fit a recalibration to lists: vx.recalibrate(y, lists).", python_only=True)
                ],
            )
        raw, _ = to_array(p, "p")
        forecasts = new_rows(p, fitted=(self.n_classes, self.classes), **read)
        rows = to_host(widen(forecasts.batch(0, forecasts.n_rows).p)).astype(float)
        return rows, raw.ndim == 1

    def _new(self, given: object, p: Floats) -> Floats:
        if isinstance(given, str):
            if given != "estimate":
                raise InputError(
                    f"must be numbers or 'estimate', not {show(given)}",
                    argument="frequencies",
                    values=[given],
                )
            return estimated(p, self.frequencies)
        if isinstance(given, Mapping):
            names = range(self.n_classes) if self.classes is None else self.classes
            if set(given) != set(names):
                raise InputError("must name every class once", argument="frequencies", kind="label")
            given = [given[name] for name in names]
        new = to_host(to_array(given, "frequencies")[0])
        fits = new.shape == (self.n_classes,) and new.dtype.kind in "fiu"
        if not fits or not np.isfinite(new).all() or (new < 0).any() or not abs(new.sum() - 1) <= 1e-3:
            raise InputError(
                f"must be {self.n_classes} numbers that are not negative and sum to 1",
                argument="frequencies",
                values=new.tolist() if new.ndim == 1 else [],
            )
        unseen = (new > 0) & (self.frequencies == 0)
        if unseen.any():
            k = int(np.argmax(unseen))
            raise InputError(
                "must be zero for classes that never happened in the rows that this was fitted to",
                argument="frequencies",
                found=f"{k if self.classes is None else self.classes[k]} has {new[k]:g}",
                values=[float(new[k])],
            )
        return np.asarray(new / new.sum(), dtype=float)

    # ---- out ---------------------------------------------------------------------------------

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Recalibration:
        """Read what `save` wrote, with every part checked.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Recalibration
            What was saved, without the rows.
        """
        facts, sampled = facts_in(as_path(path))
        kind = cls
        if "lists_of" in facts and not issubclass(cls, ListRecalibration):
            kind = ListRecalibration
        result = kind(**facts)
        return result if sampled is None else result.with_sample(*sampled)

    def plot(self, ax: Any = None) -> Any:
        """Draw what each method gains, with intervals.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.plots import draw

        return draw(self._sheet(), ax)

    def _sheet(self) -> Sheet:
        """What each method gains, with intervals."""
        from verax.display.axes import Axis
        from verax.display.figures import Sheet, row_height, rows_figure
        from verax.display.marks import Guide, Ranged, Ranges

        rows = []
        for trial in self.trials:
            if trial.method != "none":
                gain = trial.gain.share, *trial.gain.share_interval
                rows.append(Ranged(trial.method, *gain, flagged=trial.method != self.method))
        used, unused = "the method that is used", "methods that are not used"
        level = f"{100 * self.confidence:g}% interval"
        ranges = Ranges(used, rows, level, unused, flag=("soft", "dot"))
        x = Axis(f"{self.rule} gained on held-out rows, share of the loss", percent=True)
        figure = rows_figure("", ranges, x, "method", Guide("", "x", 0.0))
        return Sheet([figure], size=(5.9, row_height(len(rows))), key="above")


@dataclass(frozen=True, repr=False, eq=False)
class ListRecalibration(Recalibration):
    """A way to better probabilities of top lists, and what it gains.

    `apply` takes lists and returns lists of the same classes. An invalid list is taken as its largest valid
    sublist, as it is scored, and gains do not count its penalty.

    Attributes
    ----------
    lists_of : int
        The number of classes that the lists are of.
    n_invalid : int
        How many of the lists that it was fitted to were invalid.

    See Also
    --------
    Recalibration : What it shares with recalibrations of full distributions.

    Examples
    --------
    >>> import verax as vx
    >>> lists = vx.TopLists.from_dicts([{0: 0.9, 1: 0.05}, {1: 0.8, 2: 0.1}] * 50, n_classes=10)
    >>> recalibration = vx.recalibrate([0, 5, 3, 1] * 25, lists, method="temperature_rest")
    >>> recalibration.trials[-1].detail
    'temperature 1.19, unlisted times 5.35'
    >>> [round(t, 3) for t in recalibration.apply(lists)[[0]].confidences.tolist()]
    [0.569, 0.051]
    """

    lists_of: Hidden[int] = 0
    n_invalid: Hidden[int] = 0

    _facts = ("_of_lists",)

    @property
    def _of_lists(self) -> dict[str, int]:
        return {"n_classes": self.lists_of, "n_invalid": self.n_invalid}

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return self.lists_of

    @property
    def _of(self) -> str:
        return "top lists"

    def apply(self, p: object) -> TopLists:  # type: ignore[override]
        """Recalibrated lists of the same classes, in the same order; valid lists stay valid.

        Parameters
        ----------
        p : TopLists
            Lists of the same number of classes. Those that are invalid become their largest valid sublists.

        Returns
        -------
        TopLists
            New lists; the same ones where `method` is "none".
        """
        if not isinstance(p, TopLists):
            raise InputError(
                "must be top lists, as those that this was fitted to",
                argument="p",
                kind="type",
                found=f"it is a {type(p).__name__}",
                remedies=[Remedy("vx.TopLists.from_probabilities(p, k) makes lists.", python_only=True)],
            )
        if p.n_classes != self.n_classes:
            raise InputError(
                f"must be lists of {in_digits(self.n_classes)} classes, as those that this was fitted to",
                argument="p",
                kind="length",
                found=f"there are {in_digits(p.n_classes)}",
                values=[p.n_classes],
            )
        if not isinstance(self.form, ListScaling):
            return p
        valid = p.largest_valid()
        given = Ragged(valid.classes, valid.confidences, valid.offsets)
        return TopLists(
            valid.classes,
            self.form.confidences(given, valid.unaccounted, p.n_classes),
            valid.offsets,
            p.n_classes,
            vocabulary=p.vocabulary,
            tolerance=p.tolerance,
            slack=p.slack,
            choices=p.choices,
        )

    def estimate_frequencies(self, p: object) -> Floats:  # type: ignore[override]
        """Refused: lists do not say how frequent each class is.

        Parameters
        ----------
        p : TopLists
            Lists.

        Returns
        -------
        array
            Never.
        """
        raise InputError(
            "must be full distributions: lists do not say how frequent each class is",
            argument="p",
            kind="type",
        )
