"""Small files of predictions and the analyses that were recorded of them; `save` saves them.

An archive called like a version holds what that version saved: later ones must read it. It is not made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_LZMA, ZipFile

import numpy as np
import pyarrow.csv as pacsv

import verax as vx
from verax.report import Report

HERE = Path(os.path.relpath(Path(__file__).parent))
CLASSES = ("low", "middle", "high")
SITES = ("north", "south")
N, SHARDS = 44, 2


# Methods of recalibration that 0.2.0 knew, and one of 0.3.0.
METHODS = ("temperature", "bcts", "vector", "dirichlet", "isotonic", "prior", "svector")
# What a monitor says in words, and by whom.
WORDED = ("verax", "verdict", "findings", "next_step", "cautions")


def write_rows(folder: Path) -> None:
    """The rows of both shards: distributions of two models as CSV, top lists as JSON Lines."""
    rng = np.random.default_rng(20)
    p = np.round(rng.dirichlet([1.2, 0.8, 0.7], (2, N)), 3)
    p[:, :, 2] = np.round(1 - p[:, :, 0] - p[:, :, 1], 3)
    p[:, 0] = [0.0, 1.0, 0.0]
    y = (rng.random(N)[:, None] > np.cumsum(p[0], axis=1)).sum(axis=1).clip(0, 2)
    y[0] = 1
    w, who, site = rng.integers(1, 4, N) / 2, rng.integers(0, 9, N), rng.integers(0, 2, N)
    for shard in range(SHARDS):
        header = "label,a_low,a_middle,a_high,b_low,b_middle,b_high,w,who,site,name\n"
        rows = range(shard * N // SHARDS, (shard + 1) * N // SHARDS)
        lines = []
        for i in rows:
            numbers = [f"{x:g}" for x in (*p[0, i], *p[1, i], w[i])]
            lines.append([CLASSES[y[i]], *numbers, f"who{who[i]}", SITES[site[i]], f"row{i}"])
        (folder / f"dense{shard}.csv").write_text(header + "\n".join(map(",".join, lines)) + "\n")
        records = []
        for i in rows:
            order = np.argsort(-p[0, i], kind="stable")[: i % 4]
            listed = {CLASSES[j]: float(p[0, i, j]) for j in order}
            own = {"w": float(w[i]), "who": f"who{who[i]}", "site": SITES[site[i]]}
            records.append({"label": CLASSES[y[i]], "prediction": listed, **own})
        text = "\n".join(map(json.dumps, records))
        (folder / f"lists{shard}.jsonl").write_text(text + "\n")


def _dense(folder: Path, shard: int, **options: Any) -> Any:
    probs = options.pop("probs", [f"a_{name}" for name in CLASSES])
    table = pacsv.read_csv(folder / f"dense{shard}.csv")
    return vx.scan(table, probs=probs, target="label", classes=CLASSES, **options)


def _both(folder: Path, shard: int, **options: Any) -> Any:
    probs = {model: [f"{model}_{name}" for name in CLASSES] for model in "ab"}
    return _dense(folder, shard, probs=probs, **options)


def _lists(folder: Path, shard: int, **options: Any) -> Any:
    given = {"probs": "prediction", "target": "label", "lists": True, "classes": CLASSES, **options}
    return vx.scan(folder / f"lists{shard}.jsonl", **given)


OPENED: dict[str, Callable[[Path, int], Any]] = {
    "dense": lambda folder, shard: _dense(folder, shard, id="name", by="site"),
    "weighted": lambda folder, shard: _dense(folder, shard, weights="w", groups="who", by="site"),
    "models": lambda folder, shard: _both(folder, shard, weights="w"),
    "lists": lambda folder, shard: _lists(folder, shard),
    "grouped lists": lambda folder, shard: _lists(folder, shard, weights="w", groups="who"),
    "dense report": lambda folder, shard: _both(folder, shard, id="name", by="site"),
    "weighted report": lambda folder, shard: _dense(folder, shard, weights="w", groups="who"),
    "list report": lambda folder, shard: _lists(folder, shard, weights="w", groups="who"),
}
ONE: dict[str, Callable[[Any], Any]] = {
    "evaluate": vx.evaluate,
    "brier": vx.brier,
    "decompose": lambda handle: vx.decompose(handle, rule="brier"),
    "reliability": vx.reliability,
    "ece": vx.ece,
    "worst": lambda handle: vx.worst(handle, rule="brier", n=4),
    "lengths": vx.compare_lengths,
    "slope": vx.calibration_slope,
}
LISTS: dict[str, Callable[[Any], Any]] = {
    "retention": lambda handle: vx.retention(handle, rule="brier", metric=["coverage"], bootstrap=4),
}
DENSE: dict[str, Callable[[Any], Any]] = {
    "retention": lambda handle: vx.retention(handle, rule="brier", metric=["accuracy"], bootstrap=4),
    "risk": lambda handle: vx.risk_coverage(handle, bootstrap=4),
    "ordered": lambda handle: vx.evaluate(handle, ordered=True),
    "qwk": lambda handle: vx.retention(handle, rule="rps", metric=["qwk"], bootstrap=4),
    "auc": vx.roc_auc,
    "ap": vx.average_precision,
    "c index": vx.c_index,
    "net benefit": vx.net_benefit,
    "murphy": vx.diagrams.murphy,
    "subgroups": lambda handle: vx.subgroups(handle, by="site", rule="brier", least=1),
}
REPORT: dict[str, Callable[[Any], Any]] = {"report": lambda handle: Report.of(handle)}
CARDS = ("plain", "costs", "two ways", "skipped")
SEVERAL: dict[str, Callable[[Any], Any]] = {
    "compare": lambda handle: vx.compare(handle, rule=["brier", "log_score"], reference="uniform"),
    "net benefit": vx.net_benefit,
}


def analyses(name: str) -> dict[str, Callable[[Any], Any]]:
    """What was recorded of the rows opened under this name."""
    if "report" in name:
        return REPORT
    if name == "models":
        return SEVERAL
    return ONE | (LISTS if "list" in name else DENSE)


def recorded(folder: Path, name: str) -> Iterator[tuple[int, Any]]:
    """Each shard, with all its analyses."""
    for shard in range(SHARDS):
        handle = OPENED[name](folder, shard)
        handle = vx.scan(handle, record="model" if len(handle.models) == 1 else True)
        for analyse in analyses(name).values():
            analyse(handle)
        yield shard, handle


def cards(folder: Path, shard: int) -> dict[str, Any]:
    """Cards of rows in memory: with costs, two kinds of groups, or rows that were left out."""
    table = pacsv.read_csv(folder / f"dense{shard}.csv").to_pydict()
    y = table["label"]
    p = np.stack([table[f"a_{name}"] for name in CLASSES], axis=1)
    broken = p.copy()
    broken[3] = 0.9
    given: dict[str, Any] = {"classes": CLASSES}
    return {
        "plain": vx.evaluate(y, p, **given),
        "costs": vx.evaluate(
            y, p, ordered=True, costs="linear", weights=np.array(table["w"]) * 1e-300, **given
        ),
        "two ways": vx.evaluate(y, p, groups=[table["who"], table["site"]], **given),
        "skipped": vx.evaluate(y, broken, invalid="skip", **given),
    }


def _cases(rows: Path) -> tuple[list[str], Any]:
    """Outcomes and forecasts of all rows."""
    tables = [pacsv.read_csv(rows / f"dense{shard}.csv").to_pydict() for shard in range(SHARDS)]
    y = [label for table in tables for label in table["label"]]
    p = np.stack([[x for table in tables for x in table[f"a_{name}"]] for name in CLASSES], axis=1)
    # An outcome of probability zero is no subject here.
    return y, np.round(0.98 * p + 0.02 / 3, 6)


def recalibrated(rows: Path, method: str) -> Any:
    """A method fitted to all rows."""
    y, p = _cases(rows)
    return vx.recalibrate(y, p, method=method, rule="brier", classes=CLASSES, folds=3)


def watched(rows: Path) -> Any:
    """A monitor that has seen two days, and forecasts of a third."""
    y, p = _cases(rows)
    half = N // 2
    monitor = vx.Monitor(0.6, rule="brier", tolerance=0.05)
    monitor.update(y[:half], p[:half], time="2026-01-01", classes=CLASSES)
    monitor.predict(p[half:], ids=[f"row{i}" for i in range(half, N)], time="2026-01-02", classes=CLASSES)
    monitor.outcomes([f"row{i}" for i in range(half, N - 4)], y[half : N - 4], time="2026-01-02")
    return monitor


def made_of(path: Path, rows: Path) -> Any:
    """What a file that `save_fitted` wrote gives: probabilities, sets, or all that a monitor says."""
    name, (_, p) = path.name, _cases(rows)
    if name.startswith("recalibration"):
        return vx.results.Recalibration.load(path).apply(p).tolist()
    if name.startswith("conformal"):
        return vx.results.Conformal.load(path).apply(p).mask().tolist()
    told = vx.Monitor.load(path).to_dict()
    return {key: value for key, value in told.items() if key not in WORDED}


def fitted_in(version: str) -> list[str]:
    """The names of what is fitted in the archive of a version."""
    with ZipFile(HERE / f"{version}.zip") as archive:
        return [name for name in archive.namelist() if name.endswith(".fitted")]


def save_fitted(folder: Path, rows: Path = HERE / "rows") -> None:
    """Save what is fitted, and beside each file what it gives."""
    y, p = _cases(rows)
    for method in METHODS:
        recalibrated(rows, method).save(folder / f"recalibration-{method}.fitted")
    vx.conformal(y, p, level=0.8, classes=CLASSES).save(folder / "conformal.fitted")
    watched(rows).save(folder / "monitor.fitted")
    for path in sorted(folder.glob("*.fitted")):
        path.with_suffix(".json").write_text(json.dumps(made_of(path, rows)))


def save(folder: Path, name: str, rows: Path = HERE / "rows") -> None:
    """Save the summaries, or the cards, of both shards that are called by a name."""
    if name in OPENED:
        for shard, handle in recorded(rows, name):
            handle.save(folder / f"{name}{shard}.verax")
    else:
        for shard in range(SHARDS):
            cards(rows, shard)[name].save(folder / f"{name}{shard}.verax")


def main() -> None:
    """Write what this version saves into an archive called like it."""
    with TemporaryDirectory() as folder, ZipFile(HERE / f"{vx.__version__}.zip", "w", ZIP_LZMA) as archive:
        for name in (*OPENED, *CARDS):
            save(Path(folder), name)
        save_fitted(Path(folder))
        for path in sorted(Path(folder).iterdir()):
            archive.write(path, path.name)


if __name__ == "__main__":
    main()
