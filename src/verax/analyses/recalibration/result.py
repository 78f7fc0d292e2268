"""A recalibration: the method, its held-out gain, and its application to new rows."""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import numpy as np

from verax._version import __version__
from verax.analyses.comparison.result import Comparison
from verax.analyses.recalibration.forms import CalibrationMap
from verax.analyses.recalibration.list_forms import ListScaling
from verax.analyses.recalibration.records import Trial
from verax.analyses.recalibration.shift import estimated, shifted
from verax.analyses.recalibration.shown import ShownRecalibration
from verax.analyses.recalibration.storing import FORMAT, VERSION, facts_in
from verax.analyses.stored import StoredAsJson
from verax.common.paths import as_path
from verax.common.sizes import in_digits
from verax.errors import InputError, Remedy, show
from verax.inputs.arrays import Floats, to_array, to_host, widen
from verax.inputs.forecasts import new_rows
from verax.inputs.groups import GroupCount
from verax.inputs.lists.ragged import Ragged
from verax.inputs.lists.rows import ListRows
from verax.inputs.lists.toplists import TopLists
from verax.inputs.options import Written, reads, reads_each


@dataclass(frozen=True, repr=False, eq=False)
class Recalibration(StoredAsJson, ShownRecalibration):
    """A way to better probabilities, and what it gains.

    Made by `recalibrate`, or by `Recalibration.load` from a file.

    Attributes
    ----------
    method : str
        The method that `apply` uses; "none" where nothing is known to be better than doing nothing.
    asked : str
        The method or methods asked for; "best" for a choice.
    form : CalibrationMap
        What was fitted to all rows.
    rule : str
        The rule that was minimised and measured.
    trials : tuple of Trial
        All methods tried, "none" first, and "best" last where there was a choice.
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
    picks : tuple of str
        The method that was chosen without each fold. Where these differ, the choice is uncertain.
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
    >>> found = vx.recalibrate([0, 1, 0, 1] * 30, [0.05, 0.9, 0.3, 0.3] * 30, method="temperature")
    >>> found.method, found.n_rows
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
    picks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    comparison: Comparison | None = None
    held_out: Floats | ListRows | None = None
    columns: tuple[str, ...] = ()

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.frequencies)

    def trial(self, method: str) -> Trial:
        """One of the methods tried, by name.

        Parameters
        ----------
        method : str
            The name of the method.

        Returns
        -------
        Trial
            What it gains.
        """
        for trial in self.trials:
            if trial.method == method:
                return trial
        tried = ", ".join(trial.method for trial in self.trials)
        raise KeyError(f"{method!r} was not tried; these were: {tried}")

    # ---- use ---------------------------------------------------------------------------------

    @reads_each
    def apply(
        self,
        p: object,
        *,
        frequencies: Sequence[float] | Mapping[Hashable, float] | Literal["estimate"] | None = None,
        **read: Unpack[Written],
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
        >>> found = vx.recalibrate(y, p, method="prior")
        >>> found.apply([0.5], frequencies=[0.9, 0.1]).round(3).tolist()
        [0.196]
        """
        rows, single = self._read(p, read)
        better: Floats = self.form.apply(rows)
        if frequencies is not None:
            better = shifted(better, self.frequencies, self._new(frequencies, better))
        return better[:, 1] if single else better

    @reads
    def estimate_frequencies(self, p: object, **read: Unpack[Written]) -> Floats:
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

    def _as_dict(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "version": VERSION,
            "verax": __version__,
            "method": self.method,
            "asked": self.asked,
            "rule": self.rule,
            "classes": None if self.classes is None else list(self.classes),
            "ordered": self.ordered,
            "frequencies": self.frequencies.tolist(),
            "n_rows": self.n_rows,
            "n_groups": list(self.n_groups) if isinstance(self.n_groups, tuple) else self.n_groups,
            "folds": self.folds,
            "seed": self.seed,
            "confidence": self.confidence,
            "picks": list(self.picks),
            "notes": list(self.notes),
            "columns": list(self.columns),
            "trials": [trial.to_dict() for trial in self.trials],
            "form": self.form.to_dict(),
            **self._noted(),
        }

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
        found = kind(**facts)
        return found if sampled is None else found.with_sample(*sampled)

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
        from verax.display.recalibration import draw_gains

        return draw_gains(self, ax)


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
    >>> found = vx.recalibrate([0, 5, 3, 1] * 25, lists, method="temperature_rest")
    >>> found.trials[-1].detail
    'temperature 1.19, unlisted times 5.35'
    >>> [round(t, 3) for t in found.apply(lists)[[0]].confidences.tolist()]
    [0.569, 0.051]
    """

    lists_of: int = 0
    n_invalid: int = 0

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

    def _as_dict(self) -> dict[str, Any]:
        lists = {"n_classes": self.lists_of, "n_invalid": self.n_invalid}
        return {**super()._as_dict(), "of_lists": lists}
