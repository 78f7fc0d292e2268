"""Miscalibration against discrimination of many models, with lines of equal score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Unpack

from verax.analyses.calibration.decomposition import event_recipe, read_decomposition
from verax.common.checks import looked_up
from verax.display.tables import Column, Table, Tabled
from verax.inference.intervals import Resampling
from verax.inputs.memory import open_rows
from verax.inputs.options import RowOptions, reads
from verax.inputs.skipping import MaySkip
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import headline_rule, name_of, parse


@dataclass(frozen=True)
class MappedModel:
    """The parts of the mean score of one model.

    Attributes
    ----------
    name : str
        The name of the model.
    score : float
        The mean score: miscalibration - discrimination + uncertainty.
    miscalibration : float
        The in-sample gain of recalibration.
    discrimination : float
        The gain of the recalibrated forecast over the class frequencies.
    """

    name: str
    score: float
    miscalibration: float
    discrimination: float


@dataclass(frozen=True, repr=False, eq=False)
class ScoreMap(Tabled, MaySkip):
    """The losses of models: miscalibration, which recalibration can mend, or too little discrimination.

    Attributes
    ----------
    models : list of MappedModel
        The models by their mean score, the best first.
    rule : str
        The rule.
    uncertainty : float
        The score of predicting the class frequencies: models above it are worse than that.
    n_rows : int
        The number of rows.

    Examples
    --------
    >>> import verax as vx
    >>> y = [0, 1, 0, 1]
    >>> diagram = vx.diagrams.score_map(y, {"sharp": [0.1, 0.9, 0.2, 0.8], "flat": [0.5] * 4}, rule="brier")
    >>> [(m.name, round(m.score, 3), round(m.miscalibration, 3)) for m in diagram.models]
    [('sharp', 0.05, 0.05), ('flat', 0.5, 0.0)]
    """

    models: list[MappedModel]
    rule: str
    uncertainty: float
    n_rows: int

    _notes_apart = True

    def __getitem__(self, name: str) -> MappedModel:
        return looked_up({model.name: model for model in self.models}, name, "model")

    def plot(self, ax: Any = None) -> Any:
        """Draw miscalibration against discrimination; models on a line have the same score.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.comparisons import score_map_figure
        from verax.display.figures import Sheet
        from verax.display.plots import draw

        return draw(Sheet([score_map_figure(self)], size=(5.1, 3.7)), ax)

    def _tables(self) -> list[Table]:
        columns = [
            Column("model", "model", value="name", right=False),
            Column("score", f"mean {self.rule}", ".5f"),
            Column("miscalibration", "miscalibration", ".5f"),
            Column("discrimination", "discrimination", ".5f"),
        ]
        return [Table(columns, self.models)]

    def _heading(self) -> str:
        return (
            f"verax score map: {len(self.models)} models, {self.n_rows:,} rows; {self.rule} = miscalibration "
            f"- discrimination + {self.uncertainty:.5f}"
        )

    def _notes(self) -> list[str]:
        return self.remarks


@reads
def score_map(
    y: object,
    forecasts: Mapping[str, object] | None = None,
    *,
    rule: Rule | str | None = None,
    ordered: bool = False,
    **read: Unpack[RowOptions],
) -> ScoreMap:
    """Miscalibration and discrimination of many models, to see which of them recalibration would help.

    A model far to the right is miscalibrated: recalibrate it. One far down discriminates little: it needs
    better features or another model. `plot` draws them with lines of equal score.

    Parameters
    ----------
    y
    forecasts : mapping of str to forecasts, optional
        The forecasts of each model for the same rows, by name.
    rule : Rule or str, optional
        A rule that `decompose` takes; by default `brier`, or `rps` if `ordered`.
    ordered
    **read

    Returns
    -------
    ScoreMap
        The parts of the mean score of each model.

    See Also
    --------
    decompose : The parts for one model, with intervals, tests and each class.
    compare : Which differences between models are significant.

    References
    ----------
    Dimitriadis, Gneiting, Jordan and Vogel (2024), doi:10.1016/j.ijforecast.2023.09.007

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> q = rng.random(1000)
    >>> y = rng.random(1000) < q
    >>> models = {"honest": q, "too sure": q**2 / (q**2 + (1 - q) ** 2), "flat": np.full(1000, 0.5)}
    >>> diagram = vx.diagrams.score_map(y, models)
    >>> diagram["too sure"].miscalibration > diagram["honest"].miscalibration
    True
    >>> abs(diagram["too sure"].discrimination - diagram["honest"].discrimination) < 1e-12
    True
    """
    chosen = parse(rule) if rule is not None else headline_rule(ordered=ordered)
    order_matters = needs_order([chosen], ordered=ordered)
    handle = open_rows(y, forecasts, ordered=order_matters, dense=True, named="forecasts", **read)
    summaries = handle.summarise({model: event_recipe(handle, model, chosen) for model in handle.models})
    plan = Resampling(replicates=0)
    parts = {model: read_decomposition(summaries[model], chosen, handle, plan) for model in handle.models}
    models = [
        MappedModel(name, part.score, part.miscalibration, part.discrimination)
        for name, part in parts.items()
    ]
    first = next(iter(parts.values()))
    ranked = sorted(models, key=lambda model: model.score)
    result = ScoreMap(ranked, name_of(chosen), first.uncertainty, summaries.n_rows)
    return result.with_skipped(summaries.skipped)
