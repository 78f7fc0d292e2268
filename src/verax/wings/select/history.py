"""Training histories: metric values by epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Unpack

from verax.common.checks import check_choice
from verax.common.paths import as_path, check_regular
from verax.common.results import Result
from verax.display.tables import Tabled
from verax.errors import InputError, Remedy, join, show
from verax.inputs.arrays import Floats
from verax.inputs.options import RowOptions
from verax.scores.base import Rule
from verax.wings.select.choice import Best, Selection
from verax.wings.select.directions import Direction, Name
from verax.wings.select.epochs import Epochs
from verax.wings.select.folds.folds import compare_folds
from verax.wings.select.folds.result import FoldComparison
from verax.wings.select.logs import (
    EPOCH,
    Record,
    are_events,
    log_history,
    merge,
    name_of_file,
    read_csv,
    read_events,
    read_json,
    read_json_lines,
    records_of,
)

Directions = Mapping[str, Direction]
_READERS = {".csv": read_csv, ".jsonl": read_json_lines, ".ndjson": read_json_lines, ".json": read_json}


@dataclass(frozen=True, repr=False, eq=False)
class History(Tabled, Result, Epochs):
    """Metric values over the epochs of a training run.

    The direction of a metric is never guessed. Rule names (`vx.rules.RULES`, or any text for `vx.parse`)
    are losses, also with a data split before or after ("val_pbs", "val/pbs"); common losses and scores have
    a known direction (`verax.wings.select.directions` lists them: "accuracy", "f1", "loss", ...); for all
    others pass `directions`.

    TensorBoard and Weights & Biases logs may hold several runs: `run` selects one. Runs that differ only in
    the data split, such as "train" and "validation", are one.

    Attributes
    ----------
    epochs : array of shape (n,)
        Number of each epoch or step, as logged; counted from 0 if none was logged.
    counter : str
        Unit of `epochs`, "epoch" or "step". Steps are used if there are no epochs, or fractional ones.
    values : dict of str to array of shape (n,)
        Values of each metric, NaN for epochs without one.
    directions : dict of str to {"min", "max"}
        "min" or "max" for metrics unknown to verax.
    notes : tuple of str
        What was omitted or merged while reading.

    Examples
    --------
    >>> from verax.selection import History
    >>> history = History.from_columns({"val_pbs": [0.9, 0.6, 0.7], "val_f1": [0.3, 0.5, 0.6]})
    >>> best = history.best("pbs")
    >>> best.epoch, best.value, best.others
    (1, 0.6, {'val_f1': 0.5})
    """

    # ---- in --------------------------------------------------------------------------------

    @classmethod
    def from_records(
        cls, records: Iterable[Record], *, directions: Directions | None = None, run: str | None = None
    ) -> History:
        """Create a history from one mapping of names to numbers per epoch, or several with the same "epoch".

        Parameters
        ----------
        records : iterable of mappings
            The numbers of each epoch.
        directions : mapping of str to {"min", "max"}, optional
            Better direction of metrics unknown to verax.
        run : str, optional
            The run to read, if there are several.

        Returns
        -------
        History
            The history.
        """
        return cls._of(records, "records", directions, run)

    @classmethod
    def from_columns(
        cls, columns: object, *, directions: Directions | None = None, run: str | None = None
    ) -> History:
        """Create a history from a mapping of names to lists, or a data frame; "epoch" numbers the rows.

        Parameters
        ----------
        columns : mapping of str to sequence of float, or data frame
            The values of each metric.
        directions : mapping of str to {"min", "max"}, optional
            Better direction of metrics unknown to verax.
        run : str, optional
            The run to read, if there are several.

        Returns
        -------
        History
            The history.
        """
        return cls._of(records_of(columns, "columns"), "columns", directions, run)

    @classmethod
    def from_keras(cls, history: object, *, directions: Directions | None = None) -> History:
        """Create a history from the return value of Keras's `model.fit`, or its `history` dictionary.

        Parameters
        ----------
        history : keras.callbacks.History or dict
            The return value of `model.fit`, or its `history`.
        directions : mapping of str to {"min", "max"}, optional
            Better direction of metrics unknown to verax.

        Returns
        -------
        History
            The history.
        """
        values = getattr(history, "history", history)
        if not isinstance(values, Mapping):
            raise InputError(
                f"must be what model.fit returns, or its history dictionary, not a {type(history).__name__}",
                argument="history",
                kind="type",
            )
        epochs = getattr(history, "epoch", None)
        numbered = {EPOCH: epochs, **values} if epochs else values
        return cls._of(records_of(numbered, "history"), "history", directions)

    @classmethod
    def from_huggingface(cls, state: object, *, directions: Directions | None = None) -> History:
        """Create a history from a `transformers.Trainer`, its `state`, or its `log_history`.

        Training and evaluation are logged at different steps, so each has gaps. Unless all epochs are whole,
        rows are numbered by step, like checkpoint folders.

        Parameters
        ----------
        state : transformers.Trainer, TrainerState or list of dicts
            The trainer, its `state`, or its `log_history`.
        directions : mapping of str to {"min", "max"}, optional
            Better direction of metrics unknown to verax.

        Returns
        -------
        History
            The history.

        Examples
        --------
        >>> log = [
        ...     {"epoch": 0.5, "step": 50, "loss": 1.2, "learning_rate": 5e-5},
        ...     {"epoch": 0.8, "step": 80, "eval_loss": 1.0, "eval_accuracy": 0.6},
        ...     {"epoch": 1.0, "step": 100, "loss": 0.9, "learning_rate": 4e-5},
        ...     {"epoch": 1.6, "step": 160, "eval_loss": 1.1, "eval_accuracy": 0.7},
        ... ]
        >>> history = History.from_huggingface(log)
        >>> history.best("loss").metric, history.counter, history.best("loss").epoch
        ('eval_loss', 'step', 80)
        """
        return cls._of(log_history(state), "state", directions)

    @classmethod
    def from_predictions(
        cls,
        epochs: Mapping[Any, Any],
        rules: Sequence[Rule | str] | None = None,
        *,
        method: str | Sequence[str] = "temperature",
        **read: Unpack[RowOptions],
    ) -> History:
        """Create a history from the validation predictions of each epoch.

        Parameters
        ----------
        epochs : mapping of number to (y, p) or Handle
            Outcomes and forecasts of the validation rows of each epoch, or what `vx.scan` has opened.
        rules : sequence of Rule or str, optional
            What to measure: rules, "refinement" for the loss after recalibration, by the log score
            ("brier_refinement" by Brier), and metrics of a card, such as "qwk" or "balanced_accuracy". By
            default brier, log_score, pbs and refinement.
        method : str or sequence of str, default "temperature"
            How to recalibrate, as in `vx.recalibrate`.
        **read : Any
            How rows are read, as in `vx.evaluate`: `logits`, `classes`, `weights`, `groups`, ...

        Returns
        -------
        History
            The history, with the accuracy and F1 of each epoch; of more than two classes this is macro F1.

        Examples
        --------
        >>> y = [0, 1, 0, 1, 1, 0] * 20
        >>> early, late = [0.4, 0.4, 0.5, 0.6, 0.5, 0.5] * 20, [0.01, 0.99, 0.1, 0.9, 0.01, 0.1] * 20
        >>> history = History.from_predictions({1: (y, early), 2: (y, late)})
        >>> history.best("log_score").epoch, history.best("refinement").epoch
        (1, 2)
        """
        from verax.wings.select.predictions import measured

        return cls._of(measured(epochs, rules, method, read), "epochs", None)

    @classmethod
    def from_csv(
        cls, path: str | Path, *, directions: Directions | None = None, run: str | None = None
    ) -> History:
        """Read a history from a CSV file with a header.

        Keras's and Lightning's CSVLogger write such files; TensorBoard's downloads (`Wall time, Step, Value`,
        with the metric in the name of the file) and tables of several tags (`run, tag, step, value`) are
        read, and so are charts exported from Weights & Biases (`run - metric`). Lightning writes
        training and validation metrics in separate rows with holes; they are brought together by
        their epoch.

        Parameters
        ----------
        path : str or path
            The file.
        directions : mapping of str to {"min", "max"}, optional
            Better direction of metrics unknown to verax.
        run : str, optional
            The run to read, if there are several.

        Returns
        -------
        History
            The history.
        """
        return cls._from_file(path, read_csv, directions, run)

    @classmethod
    def from_jsonl(
        cls, path: str | Path, *, directions: Directions | None = None, run: str | None = None
    ) -> History:
        """Read a history from a file with a JSON object per line.

        Parameters
        ----------
        path : str or path
            The file.
        directions : mapping of str to {"min", "max"}, optional
            Better direction of metrics unknown to verax.
        run : str, optional
            The run to read, if there are several.

        Returns
        -------
        History
            The history.
        """
        return cls._from_file(path, read_json_lines, directions, run)

    @classmethod
    def read(
        cls, path: str | Path, *, directions: Directions | None = None, run: str | None = None
    ) -> History:
        """Read a history from a file, by extension: .csv, .jsonl, .ndjson or .json; or TensorBoard's events.

        JSON is a list of records, an object of columns, or Hugging Face's `trainer_state.json`. Event files
        (`events.out.tfevents...`) are read by the tensorboard package; a folder of them is read as a whole.

        Parameters
        ----------
        path : str or path
            The file, or a folder of event files.
        directions : mapping of str to {"min", "max"}, optional
            Better direction of metrics unknown to verax.
        run : str, optional
            The run to read, if there are several.

        Returns
        -------
        History
            The history.
        """
        if are_events(as_path(path)):
            return cls._of(read_events(as_path(path)), "history", directions, run)
        ending = as_path(path).suffix.lower()
        if ending not in _READERS:
            raise InputError(
                f"must end in {join(_READERS)}, or be event files of TensorBoard",
                argument="path",
                kind="file",
                found=f"{as_path(path).name} does not",
                values=[str(path)],
                remedies=[
                    Remedy("History.from_csv and from_jsonl read files of any name.", python_only=True)
                ],
            )
        return cls._from_file(path, _READERS[ending], directions, run)

    @classmethod
    def _from_file(
        cls,
        path: str | Path,
        reader: Callable[[Path], list[Record]],
        directions: Directions | None,
        run: str | None,
    ) -> History:
        check_regular(as_path(path))
        try:
            called = name_of_file(as_path(path).stem)
            return cls._of(reader(as_path(path)), "history", directions, run, called)
        except InputError as error:
            about_file = error.argument in ("history", "path")
            raise (error.replace(source=str(path)) if about_file else error) from None

    @classmethod
    def _of(
        cls,
        records: Iterable[Record],
        argument: str,
        directions: Directions | None,
        run: str | None = None,
        called: str = "value",
    ) -> History:
        log = merge(records, argument, run=run, called=called)
        if directions is not None and not isinstance(directions, Mapping):
            raise InputError(
                f"must be a mapping of names of metrics to 'min' or 'max', not {show(directions)}",
                argument="directions",
                kind="type",
                values=[directions],
            )
        stated = {} if directions is None else dict(directions)
        _check_directions(stated, log.columns)
        return cls(log.epochs, log.columns, stated, log.notes, log.counter)

    # ---- questions -------------------------------------------------------------------------

    def best(self, metric: str | Rule) -> Best:
        """Return the best epoch by a metric (the earliest of ties), with the other metrics there.

        Parameters
        ----------
        metric : str or Rule
            The metric.

        Returns
        -------
        Best
            The epoch.
        """
        return Best.of(self, self.find(metric))

    def select(
        self,
        rules: Sequence[str | Rule] | str | Rule | None = None,
        against: Sequence[str] | str | None = None,
        *,
        patience: int | None = None,
    ) -> Selection:
        """Return the best epoch by each rule, and the correlations of the rules with F1 and accuracy.

        Parameters
        ----------
        rules : str, Rule or sequence of these, optional
            Metrics to select by; by default all verax rules in the history.
        against : str or sequence of str, optional
            Metrics to correlate them with; by default all F1 and accuracy metrics.
        patience : int, optional
            Replay early stopping by each rule: which epoch would have been kept if training had stopped after
            this number of epochs without improvement.

        Returns
        -------
        Selection
            The best epochs and the correlations.

        Examples
        --------
        >>> history = History.from_columns({"pbs": [0.9, 0.6, 0.7, 0.8, 0.5], "f1": [0, 0.5, 0.6, 0.6, 0.7]})
        >>> selection = history.select("pbs", patience=2)
        >>> selection.best["pbs"].epoch, selection.stops["pbs"].epoch, selection.stops["pbs"].stopped_after
        (4, 1, 3)
        """
        return Selection.of(self, rules, against, patience=patience)

    def plot(self, **options: Any) -> Any:
        """Draw the rules over the epochs with their optima marked; use `select(...).plot()` for a subset.

        Parameters
        ----------
        **options : Any
            Options of `matplotlib.pyplot.subplots`.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        return self.select().plot(**options)

    def _as_dict(self) -> dict[str, Any]:
        return {
            "epochs": [self.epoch_at(i) for i in range(self.n_epochs)],
            "counter": self.counter,
            "values": {name: values.tolist() for name, values in self.values.items()},
            "directions": {name: self.known_direction(name) for name in self.values},
            "notes": list(self.notes),
        }

    def _frame(self) -> dict[str, list[Any]]:
        """One row per epoch or step."""
        plain = self._as_dict()
        return {self.counter: plain["epochs"], **plain["values"]}

    def __str__(self) -> str:
        return str(self.select())

    def _heading(self) -> str:
        return f"History of {self.n_epochs} {self.counter}s: {', '.join(self.values)}"

    def _repr_html_(self) -> str:
        return self.select()._repr_html_()


def _check_directions(directions: Mapping[str, str], columns: Mapping[str, Floats]) -> None:
    bases = {Name.of(column).base for column in columns}
    for name, direction in directions.items():
        if not isinstance(name, str) or not isinstance(direction, str) or direction not in ("min", "max"):
            raise InputError(
                "must be 'min' or 'max' for each metric",
                argument="directions",
                found=f"for {show(name)} it is {show(direction)}",
                values=[direction],
            )
        if name not in columns and name.lower() not in bases:
            raise InputError(
                f"must be about metrics of the history ({join(map(show, columns))})",
                argument="directions",
                kind="missing",
                found=f"{show(name)} is none",
                values=[name],
            )


Quantity = Literal["value", "pearson", "spearman"]


def select_over_folds(
    histories: Sequence[Epochs],
    metric: str,
    rules: Sequence[str | Rule] | None = None,
    *,
    of: Quantity = "value",
    patience: int | None = None,
    repeats: int | None = None,
    test_train: float | None = None,
    confidence: float = 0.95,
) -> FoldComparison:
    """Compare rules by a metric of the epochs that they keep, over the folds of cross-validation.

    Parameters
    ----------
    histories : sequence of History
        The history of the training of each fold.
    metric : str
        What the kept epochs are judged by, such as "test_macro_f1".
    rules : sequence of str or Rule, optional
        Metrics to select by; by default all verax rules in the first history.
    of : {"value", "pearson", "spearman"}, default "value"
        Compare the metric at the epoch kept, or the correlation of each rule with the metric over the epochs.
    patience : int, optional
        Keep the epoch of early stopping with this patience instead of the best of all epochs.
    repeats : int, optional
        How many rounds of cross-validation there are; by default 1.
    test_train : float, optional
        The number of test rows of a fold divided by that of training rows; by default from the number of
        folds.
    confidence : float, default 0.95
        Confidence level of the intervals.

    Returns
    -------
    FoldComparison
        The mean of each rule, and differences with corrected intervals: folds share training rows, so their
        standard deviation understates the uncertainty.

    See Also
    --------
    verax.compare_folds : The same of any scores.

    Examples
    --------
    >>> from verax.selection import History, select_over_folds
    >>> folds = [
    ...     {"brier": [0.6, 0.5, 0.55], "pbs": [0.9, 0.8, 0.7], "test_f1": [0.3, 0.4, 0.5 + fold / 50]}
    ...     for fold in range(5)
    ... ]
    >>> found = select_over_folds([History.from_columns(each) for each in folds], "test_f1")
    >>> {model.name: round(model.mean, 3) for model in next(iter(found.models.values()))}
    {'pbs': 0.54, 'brier': 0.4}
    """
    check_choice("of", of, ("value", "pearson", "spearman"))
    if not isinstance(histories, (list, tuple)) or not all(isinstance(h, History) for h in histories):
        raise InputError(
            f"must be a list of histories, one per fold, not {show(histories)}",
            argument="histories",
            kind="type",
        )
    if len(histories) < 2:
        raise InputError("must have at least two folds", argument="histories", kind="length")
    chosen = histories[0].select(rules, metric)
    names = [rule for rule in chosen.rules if rule not in chosen.against]
    scores: dict[str, list[float]] = {name: [] for name in names}
    for history in histories:
        selection = history.select(names, metric, patience=patience)
        (judged,) = selection.against
        kept = selection.best if patience is None else selection.stops
        for name in names:
            if of == "value":
                value = kept[name].at(judged)
            else:
                value = getattr(selection.correlation(name, metric), of)
            scores[name].append(value)
    higher = of != "value" or histories[0].direction(metric) == "max"
    return compare_folds(
        scores=scores,
        better="higher" if higher else "lower",
        repeats=repeats,
        test_train=test_train,
        confidence=confidence,
    )
