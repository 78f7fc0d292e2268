"""Log scorecards and comparisons to MLflow: metrics, tags with their meaning, and artifacts."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path
from typing import Any

from verax._version import __version__
from verax.analyses.cards.lines import CardLine, line_numbers
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.comparison.records import gap_numbers
from verax.analyses.comparison.result import Comparison
from verax.common.checks import check_count
from verax.common.packages import way_to_install
from verax.common.strictjson import to_json
from verax.errors import InputError, MissingPackageError, VeraxError, join, show
from verax.inference.intervals import with_ends

try:
    import mlflow
    from mlflow.entities import Metric, RunTag
except ImportError as _error:
    if _error.name != "mlflow":
        raise
    raise MissingPackageError(f"verax.adapters.mlflow needs MLflow: {way_to_install('mlflow')}.") from None

# What MLflow accepts in names everywhere.
_REFUSED = re.compile(r"[^\w\-. /]+")


def log_card(
    card: Scorecard,
    *,
    prefix: str = "",
    step: int = 0,
    report: str | Path | None = None,
    run_id: str | None = None,
) -> dict[str, float]:
    """Log a scorecard to an MLflow run and return the metrics logged.

    Every score becomes the metrics `rps`, `rps_low` and `rps_high` (the mean and the ends of its confidence
    interval) and the tag `verax.rps` with its direction, range and convention. The scorecard itself becomes
    the artifacts `verax/scorecard.json` and `verax/scorecard.txt`.

    MLflow's stores treat infinite numbers differently, so only finite numbers are logged as metrics. A
    score that is infinite is named in the tag `verax.not_finite`; its mean over the rows of finite loss
    is logged as `log_score_finite_mean`, and the weight of the other rows as `log_score_infinite_weight`.
    The artifacts are strict JSON: infinities are strings ("inf"), NaN is null, dates are strings.

    Parameters
    ----------
    card : Scorecard
        The scorecard to log.
    prefix : str, default ""
        Prefix of every name, such as `"val_"`.
    step : int, default 0
        Step of the metrics.
    report : str or path, optional
        A file to be logged as the artifact `verax/<its name>`, such as an HTML report.
    run_id : str, optional
        The run; by default the active one.

    Returns
    -------
    dict of str to float
        The metrics logged.

    Examples
    --------
    >>> import mlflow, verax as vx
    >>> from verax.adapters.mlflow import log_card
    >>> card = vx.evaluate([0, 1], [[0.8, 0.2], [0.3, 0.7]])
    >>> with mlflow.start_run():                                            # doctest: +SKIP
    ...     log_card(card, prefix="val_")
    """
    if not isinstance(card, Scorecard):
        raise InputError(f"must be a Scorecard, not a {type(card).__name__}", argument="card", kind="type")
    _check_prefix(prefix)
    known = {**card.scores, **card.metrics, **card.known_measures}
    lines = {_name(prefix + name): score for name, score in known.items()}
    if len(lines) < len(known):
        raise InputError(
            "must have names that differ in the characters that MLflow accepts",
            argument="card",
            kind="label",
            found=f"the names are {join(known)}",
        )
    numbers: dict[str, float] = {}
    for name, score in lines.items():
        numbers |= line_numbers(name, score)
    tags = {
        f"verax.{_name(prefix)}rows": f"{card.n_rows}",
        f"verax.{_name(prefix)}classes": f"{card.n_classes}{', ordered' if card.ordered else ''}",
        f"verax.{_name(prefix)}interval": f"{100 * card.resampling.confidence:g}%",
        **{f"verax.{name}": _meaning(score) for name, score in lines.items()},
    }
    infinite = [name for name, score in lines.items() if not math.isfinite(score.mean)]
    tags |= {f"verax.{_name(prefix)}not_finite": ", ".join(infinite)} if infinite else {}
    return _log(numbers, tags, _name(f"{prefix}scorecard"), card, step, report, run_id)


def log_comparison(
    comparison: Comparison,
    *,
    prefix: str = "",
    step: int = 0,
    report: str | Path | None = None,
    run_id: str | None = None,
) -> dict[str, float]:
    """Log a comparison to an MLflow run and return the metrics logged.

    Under each rule every model becomes the metrics `rps/new`, `rps/new_low` and `rps/new_high`, and
    every pair `rps/new - old` with its ends and `_p`, the p-value after the Holm correction.

    Parameters
    ----------
    comparison : Comparison
        The comparison to log.
    prefix : str, default ""
        Prefix of every name, such as `"val_"`.
    step : int, default 0
        Step of the metrics.
    report : str or path, optional
        A file to be logged as the artifact `verax/<its name>`, such as an HTML report.
    run_id : str, optional
        The run; by default the active one.

    Returns
    -------
    dict of str to float
        The metrics logged.

    Examples
    --------
    >>> import mlflow, verax as vx
    >>> from verax.adapters.mlflow import log_comparison
    >>> found = vx.compare([0, 1, 0, 1], {"new": [0.2, 0.8, 0.3, 0.9], "old": [0.5] * 4}, rule="brier")
    >>> with mlflow.start_run():                                            # doctest: +SKIP
    ...     log_comparison(found)
    """
    if not isinstance(comparison, Comparison):
        raise InputError(
            f"must be a Comparison, not a {type(comparison).__name__}", argument="comparison", kind="type"
        )
    _check_prefix(prefix)
    numbers: dict[str, float] = {}
    for rule, models in comparison.models.items():
        for model in models:
            numbers |= with_ends(_name(f"{prefix}{rule}/{model.name}"), model.mean, model.interval)
        for d in comparison.differences[rule]:
            numbers |= gap_numbers(_name(f"{prefix}{rule}/{d.a} - {d.b}"), d)
    tags = {
        f"verax.{_name(prefix)}method": comparison.method,
        f"verax.{_name(prefix)}orientation": "lower is better",
        **{f"verax.{_name(prefix + rule)}_best": comparison.best(rule) for rule in comparison.models},
    }
    return _log(numbers, tags, _name(f"{prefix}comparison"), comparison, step, report, run_id)


def _log(
    numbers: dict[str, float],
    tags: dict[str, str],
    title: str,
    result: Any,
    step: int,
    report: str | Path | None,
    run_id: str | None,
) -> dict[str, float]:
    check_count("step", step, least=0)
    path = None if report is None else _check_file(report)
    client, run_id = mlflow.MlflowClient(), run_id or _active_run()
    now = int(1000 * time.time())
    finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
    client.log_batch(
        run_id,
        metrics=[Metric(name, value, now, step) for name, value in finite.items()],
        tags=[RunTag(name, value) for name, value in {"verax.version": __version__, **tags}.items()],
    )
    client.log_text(run_id, to_json(result.to_dict(stored=False)), f"verax/{title}.json")
    client.log_text(run_id, str(result), f"verax/{title}.txt")
    if path is not None:
        client.log_artifact(run_id, str(path), "verax")
    return finite


def _check_prefix(prefix: object) -> None:
    if not isinstance(prefix, str):
        raise InputError(f"must be a text, not {show(prefix)}", argument="prefix", kind="type")


def _check_file(report: str | Path) -> Path:
    if not isinstance(report, (str, Path)) or not Path(report).is_file():
        raise InputError(
            f"must name a file; there is none at {show(str(report))}", argument="report", kind="missing"
        )
    return Path(report)


def _active_run() -> str:
    run = mlflow.active_run()
    if run is None:
        raise VeraxError("There is no active run: call this within mlflow.start_run(), or pass run_id=...")
    return str(run.info.run_id)


def _name(text: str) -> str:
    """A text with characters replaced that MLflow refuses in names."""
    return _REFUSED.sub("_", text).rstrip("_") if _REFUSED.search(text) else text


def _meaning(score: CardLine) -> str:
    low, high = score.bounds
    rule = "" if score.rule is None else f"; rule {score.rule!r}"
    return f"{score.summary}; {score.orientation}, from {low:g} to {high:g}{rule}"
