"""Cards and comparisons in MLflow: numbers as metrics, what they mean as tags, all of it as artifacts."""

from __future__ import annotations

import json
import math
import re
import time
from pathlib import Path
from typing import Any

from verax import __version__
from verax.errors import InputError, MissingPackageError, VeraxError, join
from verax.scorecard import Score, Scorecard
from verax.verdicts import Comparison

try:
    import mlflow
    from mlflow.entities import Metric, RunTag
except ImportError as error:
    if error.name != "mlflow":
        raise
    raise MissingPackageError("verax.adapters.mlflow needs MLflow: pip install 'verax[mlflow]'.") from None

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
    """Log a card to an MLflow run and return the metrics logged.

    Every score becomes the metrics `rps`, `rps_low` and `rps_high` (the mean and the ends of its
    interval) and the tag `verax.rps`, which says which way is better, the range and the convention. The
    card itself becomes the artifacts `verax/scorecard.json` and `verax/scorecard.txt`.

    What becomes of an infinite number is up to the store behind MLflow, so only finite numbers are logged
    as metrics. A score that is infinite is named in the tag `verax.not_finite`, and its mean over
    the rows of finite loss is logged as `log_score_finite_mean`, with the weight of the others as
    `log_score_infinite_weight`.

    Parameters
    ----------
    prefix : before every name, such as "val_".
    step : the step that the metrics belong to.
    report : a file to be logged as the artifact `verax/<its name>`, such as an HTML report.
    run_id : the run; the active one unless named.

    Examples
    --------
    >>> import mlflow, verax as vx
    >>> from verax.adapters.mlflow import log_card
    >>> card = vx.evaluate([0, 1], [[0.8, 0.2], [0.3, 0.7]])
    >>> with mlflow.start_run():                                            # doctest: +SKIP
    ...     log_card(card, prefix="val_")
    """
    if not isinstance(card, Scorecard):
        raise InputError(f"`card` must be a Scorecard, not a {type(card).__name__}.", argument="card")
    lines = {_name(prefix + name): score for name, score in {**card.scores, **card.metrics}.items()}
    if len(lines) < len(card.scores) + len(card.metrics):
        raise InputError(
            f"The names {join([*card.scores, *card.metrics])} are not different in the letters that MLflow "
            "accepts.",
            argument="card",
        )
    numbers: dict[str, float] = {}
    for name, score in lines.items():
        numbers |= _numbers(name, score)
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
    every pair `rps/new - old` with its ends and `_p`, Holm's p-value. The parameters are those of
    `log_card`.
    """
    if not isinstance(comparison, Comparison):
        raise InputError(
            f"`comparison` must be a Comparison, not a {type(comparison).__name__}.", argument="comparison"
        )
    numbers: dict[str, float] = {}
    for rule, models in comparison.models.items():
        for model in models:
            numbers |= _ends(_name(f"{prefix}{rule}/{model.name}"), model.mean, model.interval)
        for d in comparison.differences[rule]:
            name = _name(f"{prefix}{rule}/{d.a} - {d.b}")
            numbers |= {**_ends(name, d.difference, d.interval), f"{name}_p": d.p_adjusted}
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
    client, run_id = mlflow.MlflowClient(), run_id or _active_run()
    path = None if report is None else Path(report)
    if path is not None and not path.is_file():
        raise InputError(f"`report` must be a file; there is none at {path}.", argument="report")
    now = int(1000 * time.time())
    finite = {name: value for name, value in numbers.items() if math.isfinite(value)}
    client.log_batch(
        run_id,
        metrics=[Metric(name, value, now, step) for name, value in finite.items()],
        tags=[RunTag(name, value) for name, value in {"verax.version": __version__, **tags}.items()],
    )
    client.log_text(run_id, json.dumps(result.to_dict(), indent=2), f"verax/{title}.json")
    client.log_text(run_id, str(result), f"verax/{title}.txt")
    if path is not None:
        client.log_artifact(run_id, str(path), "verax")
    return finite


def _active_run() -> str:
    run = mlflow.active_run()
    if run is None:
        raise VeraxError("There is no active run; log within `with mlflow.start_run():`, or pass run_id=.")
    return str(run.info.run_id)


def _name(text: str) -> str:
    """A text with what MLflow refuses in names replaced."""
    return _REFUSED.sub("_", text).rstrip("_") if _REFUSED.search(text) else text


def _numbers(name: str, score: Score) -> dict[str, float]:
    numbers = _ends(name, score.mean, score.interval)
    if score.infinite_weight > 0:
        numbers |= {
            f"{name}_finite_mean": score.finite_mean,
            f"{name}_infinite_weight": score.infinite_weight,
        }
    return numbers


def _ends(name: str, mean: float, interval: tuple[float, float]) -> dict[str, float]:
    return {name: mean, f"{name}_low": interval[0], f"{name}_high": interval[1]}


def _meaning(score: Score) -> str:
    low, high = score.bounds
    rule = "" if score.rule is None else f"; rule {score.rule!r}"
    return f"{score.summary}; {score.orientation}, from {low:g} to {high:g}{rule}"
