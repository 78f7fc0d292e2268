"""Small random rows, in memory, in parts behind a handle, and without the rows of weight zero.

Every analysis says the same of all three, but for the number of rows.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import verax as vx
from scattered import Scattered
from verax.inputs.reading import Reading
from verax.scans.options import ScanOptions
from verax.scans.partitions import PartitionedHandle

# Relative, and absolute: sums in another order differ in the last digits, and standard errors by their root.
CLOSE = 1e-7


@dataclass(frozen=True)
class Case:
    """Random rows: what is passed in memory, and the table that is scanned."""

    y: np.ndarray
    models: dict[str, np.ndarray]
    weights: np.ndarray | None
    groups: np.ndarray | None
    by: np.ndarray
    ids: np.ndarray
    invalid: str

    @property
    def n_classes(self) -> int:
        return next(iter(self.models.values())).shape[1]

    @property
    def p(self) -> np.ndarray:
        return next(iter(self.models.values()))

    def options(self) -> dict[str, Any]:
        given = {"weights": self.weights, "groups": self.groups, "invalid": self.invalid}
        given["classes"] = list(range(self.n_classes))
        return {name: value for name, value in given.items() if value is not None}

    def table(self) -> pa.Table:
        columns = {"y": self.y, "by": self.by, "number": self.ids}
        for name, p in self.models.items():
            columns |= {f"{name}_{j}": p[:, j] for j in range(p.shape[1])}
        extra = {"w": self.weights, "g": self.groups}
        return pa.table(columns | {name: values for name, values in extra.items() if values is not None})

    def weighty(self) -> Case:
        """The same without rows of weight zero."""
        assert self.weights is not None
        rows = np.flatnonzero(self.weights)
        models = {name: p[rows] for name, p in self.models.items()}
        groups = None if self.groups is None else self.groups[rows]
        own = (self.weights[rows], groups, self.by[rows], self.ids[rows])
        return Case(self.y[rows], models, *own, self.invalid)

    def asked(self, several: bool) -> dict[str, Any]:
        columns = {name: [f"{name}_{j}" for j in range(self.n_classes)] for name in self.models}
        given = {
            "target": "y",
            "probs": columns if several else columns[next(iter(columns))],
            "classes": list(range(self.n_classes)),
            "id": "number",
            "by": "by",
            "invalid": self.invalid,
            "weights": None if self.weights is None else "w",
            "groups": None if self.groups is None else "g",
        }
        return {name: value for name, value in given.items() if value is not None}


class Parts(PartitionedHandle):
    """Reads the rows in parts cut at random, and merges their summaries as bytes in random order."""

    def _run(self, work: Any) -> Any:
        table, seed = self._frame
        rng, n = np.random.default_rng(seed), table.num_rows
        parts = np.split(np.arange(n), np.sort(rng.integers(0, n + 1, int(rng.integers(0, 5)))))
        rows = table.select(work.reader.columns)
        found = [work.score(rows.take(part).to_batches(), i) for i, part in enumerate(parts)]
        rng.shuffle(found)
        while len(found) > 1:
            found.append(work.merge([found.pop(), found.pop(0)]).to_bytes())
        return found


def opened(case: Case, seed: int, several: bool) -> Parts:
    """The rows of a case behind a handle."""
    options = ("target", "classes", "weights", "groups", "id", "positive", "delimiter")
    rest = {
        "by": (),
        "logits": False,
        "percent": False,
        "normalize": False,
        "invalid": "raise",
        "decimal": ".",
    }
    given = dict.fromkeys(options) | rest | case.asked(several)
    table = case.table()
    return Parts("the rows", (table, seed), ScanOptions(Reading(**given)), table)


def random_case(rng: np.random.Generator) -> Case:
    """Few rows, few classes, ties, weights with zeros, groups, now and then invalid rows.

    Probabilities are exact floats that sum to exactly 1, so that ties are ties everywhere.
    """
    k = int(rng.choice([2, 2, 3, 4]))
    n = int(rng.integers(5, 41))
    parts = int(rng.choice([8, 64, 1024]))
    models = {name: rng.multinomial(parts, rng.dirichlet(np.full(k, 0.8), n)) / parts for name in ("a", "b")}
    y = np.where(rng.random(n) < 0.6, models["a"].argmax(axis=1), rng.integers(0, k, n))
    weights: np.ndarray | None = None
    if rng.random() < 0.6:
        weights = rng.integers(0, 4, n) * float(rng.choice([1.0, 0.3]))
        weights[rng.integers(n)] = 1.0
    groups = None if rng.random() < 0.6 else rng.integers(0, int(rng.integers(1, 8)), n)
    if groups is not None and weights is not None and rng.random() < 0.5:
        # A group without weight.
        weights[(groups == groups[0]) & (groups != groups[-1])] = 0.0
        weights[-1] = 1.0
    invalid = "skip" if rng.random() < 0.3 else "raise"
    if invalid == "skip":
        for row in rng.integers(0, n, int(rng.integers(1, 4))):
            models[str(rng.choice(["a", "b"]))][row, 0] += float(rng.choice([0.5, np.nan]))
    return Case(
        y, models, weights, groups, np.array(["u", "v"])[rng.integers(0, 2, n)], np.arange(n), invalid
    )


# Rows elsewhere have no row numbers, what results store differs in the last digits, and `within` says how
# far from exact what was read from histograms is: not at all, of few rows.
UNLIKE = frozenset(
    {"row", "rows", "stored", "within", "area_within", "model", "sentences", "by", "words", "comparability"}
)

Call = Callable[..., Any]
# Every analysis of one model, by name; `**o` are weights, groups and what to do with invalid rows.
ONE: dict[str, Call] = {
    "evaluate": lambda *a, **o: vx.evaluate(*a, **o),
    "evaluate ordered": lambda *a, **o: vx.evaluate(*a, ordered=True, bootstrap=20, **o),
    "evaluate counts": lambda *a, **o: vx.evaluate(*a, weights_are="counts", bootstrap=20, **o),
    "brier": lambda *a, **o: vx.brier(*a, **_without(o, "groups")),
    "roc_auc": lambda *a, **o: vx.roc_auc(*a, **o),
    "roc_auc weighted": lambda *a, **o: vx.roc_auc(*a, average="weighted", **o),
    "roc_auc ordered": lambda *a, **o: vx.roc_auc(*a, ordered=True, **o),
    "average_precision": lambda *a, **o: vx.average_precision(*a, **o),
    "c_index": lambda *a, **o: vx.c_index(*a, **o),
    "ece": lambda *a, **o: vx.ece(*a, **_without(o, "groups")),
    "ece classes": lambda *a, **o: vx.ece(*a, bins=4, kind="classwise", **_without(o, "groups")),
    "net_benefit": lambda *a, **o: vx.net_benefit(*a, thresholds=[0.1, 0.3, 0.7], **o),
    "operating_points": lambda *a, **o: vx.operating_points(*a, threshold=[0.1, 0.3, 0.7], **o),
    "roc_curve": lambda *a, **o: vx.roc_curve(*a, points=10, **o),
    "murphy": lambda *a, **o: vx.diagrams.murphy(*a, thresholds=[0.1, 0.3, 0.7], **o),
    "deferral": lambda *a, **o: vx.deferral(*a, defer=[0.1, 0.4], **o),
    "decompose": lambda *a, **o: vx.decompose(*a, rule="brier", **o),
    "decompose log": lambda *a, **o: vx.decompose(*a, rule="log_score", **o),
    "decompose rps": lambda *a, **o: vx.decompose(*a, rule="rps", **o),
    "reliability": lambda *a, **o: vx.reliability(*a, resamples=0, **_without(o, "groups")),
    "calibration_slope": lambda *a, **o: vx.calibration_slope(*a, **o),
    "choose_thresholds": lambda *a, **o: vx.choose_thresholds(*a, folds=2, bootstrap=10, **o),
    "retention": lambda *a, **o: vx.retention(*a, rule="brier", metric="accuracy", **o),
    "retention qwk": lambda *a, **o: vx.retention(*a, rule="rps", metric="qwk", **o),
    "selective": lambda *a, **o: vx.selective(*a, metric="macro_f1", **o),
    "risk_coverage": lambda *a, **o: vx.risk_coverage(*a, **o),
    "risk_coverage rule": lambda *a, **o: vx.risk_coverage(*a, by="entropy", rule="brier", **o),
    "worst": lambda *a, **o: vx.worst(*a, rule="brier", n=3, **_without(o, "groups", "weights")),
    "compare_lengths": lambda *a, **o: vx.compare_lengths(*a, k=[1], **o),
    "recalibrate": lambda *a, **o: vx.recalibrate(*a, method="temperature", folds=2, **o),
}
# Every analysis of several models.
SEVERAL: dict[str, Call] = {
    "compare": lambda *a, **o: vx.compare(*a, rule=["brier", "log_score"], **o),
    "compare counts": lambda *a, **o: vx.compare(*a, rule="rps", weights_are="counts", **o),
    "fit_combination": lambda *a, **o: vx.fit_combination(*a, folds=2, **o),
    "roc_auc two": lambda *a, **o: vx.roc_auc(*a, **o),
    "net_benefit two": lambda *a, **o: vx.net_benefit(*a, thresholds=[0.2, 0.5], **o),
    "murphy two": lambda *a, **o: vx.diagrams.murphy(*a, thresholds=[0.2, 0.5], **o),
}


# Analyses of top lists, of one model and of two.
LISTS: dict[str, Call] = {
    "evaluate": lambda *a, **o: vx.evaluate(*a, **o),
    "decompose": lambda *a, **o: vx.decompose(*a, rule="brier", **o),
    "reliability": lambda *a, **o: vx.reliability(*a, resamples=0, **o),
    "calibration_slope": lambda *a, **o: vx.calibration_slope(*a, **o),
    "compare_lengths": lambda *a, **o: vx.compare_lengths(*a, k=[1, 2], **o),
    "top_k_error": lambda *a, **o: vx.top_k_error(*a, k=2, **o),
    "worst": lambda *a, **o: vx.worst(*a, rule="brier", n=3, **_without(o, "groups", "weights")),
    "compare": lambda *a, **o: vx.compare(*a, rule=["brier", "log_score"], **o),
}


def _without(options: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name not in names}


def _subgroups(*a: Any, by: Any = "by", **o: Any) -> Any:
    return vx.subgroups(*a, by=by, least=1, **o)


def attempt(rng: np.random.Generator) -> None:
    """One analysis of one random case, both ways."""
    case = random_case(rng)
    name = str(rng.choice([*ONE, *SEVERAL, "subgroups"]))
    check(name, case, int(rng.integers(2**32)))
    check_absent(name, case)
    check_lists(str(rng.choice(list(LISTS))), case, rng)


def check_lists(name: str, case: Case, rng: np.random.Generator) -> None:
    """Compare what an analysis says of top lists in memory with what it says of them in parts."""
    rows = [dict(zip(range(len(p)), p.tolist(), strict=True)) for p in case.p if p.sum() == 1]
    # Some lists are empty, some lack classes, and some sum to more than 1.
    kept = [{k: t for k, t in row.items() if t > 0 and rng.random() < 0.7} for row in rows]
    lists = vx.TopLists.from_dicts(kept, n_classes=case.n_classes)
    n = len(kept)
    y = case.y[:n]
    own = {"weights": case.weights, "groups": case.groups}
    own = {label: values[:n] for label, values in own.items() if values is not None}
    if name in ("reliability", "top_k_error"):
        own.pop("groups", None)
    if n < 5 or ("weights" in own and not own["weights"].any()):
        return
    models: Any = {"a": lists, "b": lists.truncate(1)} if name == "compare" else lists
    extra = {"ids": np.arange(n)} if name == "worst" else {}
    handle = Scattered(y, models, n_parts=int(rng.integers(1, 5)), seed=int(rng.integers(99)), **own, **extra)
    call = LISTS[name]
    here, there = _told(lambda: call(y, models, **own, **extra)), _told(lambda: call(handle))
    differences = list(_different(here, there, ""))
    assert not differences, f"{name} of {n} lists, {sorted(own)}: " + "; ".join(differences[:4])


def check(name: str, case: Case, seed: int) -> None:
    """Compare what an analysis says of rows in memory with what it says of them in parts."""
    here = _told(lambda: _called(name, case))
    there = _told(lambda: _call(name)(opened(case, seed, name in SEVERAL)))
    for found in (here, there) if name.startswith("risk_coverage") else ():
        assert not isinstance(found, dict) or max(found["coverage"]) <= 1, f"coverage of {_shape(case)}"
    if isinstance(here, dict) and here.get("within_groups") and there[0] == "refused":
        # Sums of groups do not tell the rows of a group that is a subgroup apart: a handle says so.
        return
    differences = list(_different(here, there, ""))
    assert not differences, f"{name} of {_shape(case)}: " + "; ".join(differences[:4])


def check_absent(name: str, case: Case) -> None:
    """Rows of weight zero are as if absent, except that `n_rows` counts the rows that were read."""
    if case.weights is None or case.weights.all() or name == "worst":
        return
    if name == "subgroups" and set(case.weighty().by) != set(case.by):
        # A subgroup without weight is refused.
        return
    here = _told(lambda: _called(name, case))
    without = _told(lambda: _called(name, case.weighty()))
    # Notes and what was skipped count rows; `worst` takes no weights.
    ignored = ("n_rows", "notes[0]", "notes[1]", "notes[2]")
    differences = [
        each
        for each in _different(here, without, "")
        if not each.split(":")[0].endswith(ignored) and not each.startswith(".skipped")
    ]
    assert not differences, f"{name} without weight zero, {_shape(case)}: " + "; ".join(differences[:4])


def _called(name: str, case: Case) -> Any:
    """What an analysis says of rows in memory."""
    options = case.options() | ({"by": case.by} if name == "subgroups" else {})
    if name == "worst":
        options["ids"] = case.ids
    return _call(name)(case.y, case.models if name in SEVERAL else case.p, **options)


def _call(name: str) -> Call:
    return _subgroups if name == "subgroups" else (ONE | SEVERAL)[name]


def _shape(case: Case) -> str:
    return f"{len(case.y)} rows, {case.n_classes} classes, {sorted(case.options())}, {case.invalid}"


def _told(call: Callable[[], Any]) -> Any:
    """What a call says: its result as values, or the kind of its refusal."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            found = call()
    except vx.VeraxError as error:
        return ("refused", type(error).__name__, getattr(error, "kind", ""), str(error))
    return _values(found.to_dict() if hasattr(found, "to_dict") else found)


def _values(found: Any) -> Any:
    if isinstance(found, Mapping):
        return {name: _values(value) for name, value in found.items() if name not in UNLIKE}
    if isinstance(found, (list, tuple)):
        return [_values(value) for value in found]
    return found


def _different(here: Any, there: Any, where: str) -> Iterator[str]:
    """Where two results differ by more than rounding."""
    if isinstance(here, dict) and isinstance(there, dict):
        for name in here.keys() | there.keys():
            if where.endswith(".card") and name == "skipped":
                continue
            if name in here and name in there:
                yield from _different(here[name], there[name], f"{where}.{name}")
            else:
                yield f"{where}.{name}: only {'in memory' if name in here else 'behind the handle'}"
    elif isinstance(here, (list, tuple)) and isinstance(there, (list, tuple)) and len(here) == len(there):
        if here[:1] == ("refused",):
            here, there = here[:3], there[:3]
        for i, (a, b) in enumerate(zip(here, there, strict=True)):
            yield from _different(a, b, f"{where}[{i}]")
    elif not _same(here, there):
        yield f"{where}: {here!r:.90} in memory, {there!r:.90} behind the handle"


def _same(here: Any, there: Any) -> bool:
    numbers = all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in (here, there))
    if not numbers:
        return bool(here == there)
    both_nan = math.isnan(here) and math.isnan(there)
    return both_nan or here == there or math.isclose(here, there, rel_tol=CLOSE, abs_tol=CLOSE)
