"""How far results from a file are from those of the same rows in memory, in another order."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as papq

import recording
import verax as vx

# Below and above the number of rows and of distinct forecasts up to which results from files are exact.
SIZES = (100_000, 1_200_000)
ROWS_OF_GROUPS = 2**16
# The parts of names in results that belong to intervals, bands and tests.
UNCERTAIN = ("interval", "low", "high", "band", "p_value", "se", "std")
# Not numbers about the rows.
LEFT_OUT = ("stored", "within", "seed", "sampled", "n_rows")

QUESTIONS: dict[str, Callable[..., Any]] = {
    "evaluate": vx.evaluate,
    "compare": vx.compare,
    "roc_auc": vx.roc_auc,
    "average_precision": vx.average_precision,
    "roc_curve": vx.roc_curve,
    "precision_recall_curve": vx.precision_recall_curve,
    "decompose": lambda *rows: vx.decompose(*rows, rule="brier"),
    "calibration_slope": vx.calibration_slope,
    "net_benefit": vx.net_benefit,
    "murphy": vx.diagrams.murphy,
    "retention": vx.retention,
    "selective": vx.selective,
    "recalibrate": vx.recalibrate,
    "choose_thresholds": vx.choose_thresholds,
}
OF_TWO_MODELS = ("compare", "murphy")


def rows(n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Outcomes of two classes, an overconfident model and a model with some noise."""
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 2, n)
    y = (rng.random(n) < p).astype(int)
    logits = np.log(p / (1 - p))
    noisy = {"a": 1.3 * logits, "b": logits + rng.normal(0, 0.7, n)}
    return y, {name: np.stack([1 / (1 + np.exp(z)), 1 / (1 + np.exp(-z))], 1) for name, z in noisy.items()}


def numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
    """All numbers of a result with their names."""
    if any(word in name for word in LEFT_OUT):
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from numbers(inner, f"{name}.{key}")
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            yield from numbers(inner, f"{name}[{i}]")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield name, float(value)


def largest(value: Any) -> float | None:
    """The largest bound on the approximation error that a result states; None without any."""
    bounds = [number for name, number in numbers({"bounds": _bounds(value.to_dict())}) if np.isfinite(number)]
    return max(bounds, default=None)


def _bounds(value: Any) -> list[Any]:
    if isinstance(value, dict):
        own = [inner for key, inner in value.items() if key == "within"]
        return own + [bound for key, inner in value.items() if key != "stored" for bound in _bounds(inner)]
    return [bound for inner in value for bound in _bounds(inner)] if isinstance(value, (list, tuple)) else []


def shown(value: float | None) -> str:
    return "" if value is None else "0" if value < 1e-12 else f"{value:.1e}"


def differences(_: recording.Data) -> None:
    print("| function | rows | difference of estimates | of intervals, bands, tests | `within` |")
    print("|---|--:|--:|--:|--:|")
    for name, ask in QUESTIONS.items():
        for n in SIZES:
            y, models = rows(n)
            given: Any = models if name in OF_TWO_MODELS else models["a"]
            columns = {f"{model}_{k}": p[:, k] for model, p in models.items() for k in (0, 1)}
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "rows.parquet")
                table = pa.table({"label": y, **columns}).take(np.random.default_rng(1).permutation(n))
                papq.write_table(table, path, row_group_size=ROWS_OF_GROUPS)
                named = {model: [f"{model}_0", f"{model}_1"] for model in models}
                probs: Any = named if name in OF_TWO_MODELS else named["a"]
                streamed = ask(vx.scan(path, target="label", probs=probs))
            here = dict(numbers(ask(y, given).to_dict()))
            there = dict(numbers(streamed.to_dict()))
            gaps = {key: abs(here[key] - there[key]) for key in here.keys() & there.keys()}
            uncertain = {key for key in gaps if any(word in key for word in UNCERTAIN)}
            estimate = max((gaps[key] for key in gaps.keys() - uncertain), default=None)
            interval = max((gaps[key] for key in uncertain), default=None)
            cells = (f"`{name}`", f"{n:,}", shown(estimate), shown(interval), shown(largest(streamed)))
            print(f"| {' | '.join(cells)} |")


TABLES = {"differences": differences}


if __name__ == "__main__":
    recording.run(__file__, TABLES)
