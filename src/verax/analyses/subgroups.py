"""The same questions asked of every subgroup: how good, how well calibrated, which model is better."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Unpack

import numpy as np

from verax.analyses.calibration.components import Decomposition
from verax.analyses.calibration.decomposition import decompose
from verax.analyses.cards.evaluation import evaluate
from verax.analyses.cards.lines import CardLine
from verax.analyses.cards.scorecard import Scorecard
from verax.analyses.chance import Chance, Work, settle
from verax.analyses.comparison.compare import compare
from verax.analyses.comparison.result import Comparison
from verax.common.checks import check_count, check_flag
from verax.display.tables import Cells, FrameKind, html_table, record_frame, text_table
from verax.errors import InputError, Remedy, join, passing, show
from verax.inference.estimates import holm
from verax.inference.intervals import WeightsAre
from verax.inputs.arrays import Floats, to_host
from verax.inputs.forecasts import Forecasts
from verax.inputs.groups import Groups, check_one_way
from verax.inputs.lists.toplists import TopLists
from verax.inputs.options import Reading, reads
from verax.inputs.rows import Rows, faults_of, pair_each
from verax.inputs.skipping import MaySkip, take_rows
from verax.scores.base import Rule
from verax.scores.combinators import Padded, padded
from verax.scores.metrics import CostsLike, needs_order
from verax.scores.registry import as_rules, each_of, name_of, parse

# How many probabilities the draws beyond `bootstrap` may look at, for all subgroups of a model together.
_WORK = 1e8


WITHIN_GROUPS = "Each subgroup is one group: within it, rows are taken to be independent."
TIME_ORDERED = (
    "Models are compared on the rows of a subgroup in order of time; scores and tests of calibration take "
    "rows to be independent."
)


@dataclass(frozen=True)
class Subgroup:
    """One model in one subgroup.

    Attributes
    ----------
    label : object
        The label of the subgroup.
    model : str
        The name of the model.
    card, decomposition : Scorecard, Decomposition
        As `evaluate` and `decompose` give them for the rows of the subgroup.
    p_value, p_adjusted : float or None
        How often a calibrated forecast would look as miscalibrated, and the same with Holm's correction over
        the subgroups. None where it was not tested.
    stands_out : bool
        Whether the miscalibration is beyond chance after the correction.
    undecided : bool
        Whether it took too many draws to find that out.
    """

    label: Any
    model: str
    card: Scorecard
    decomposition: Decomposition
    p_value: float | None
    p_adjusted: float | None
    stands_out: bool
    undecided: bool = False


class Subgroups(MaySkip, Mapping[Any, Any]):
    """Subgroups by label; (label, model) where there are several models, whose comparisons are beside."""

    def __init__(
        self,
        lines: list[Subgroup],
        comparisons: dict[Any, Comparison],
        rule: str,
        by: str,
        *,
        within_groups: bool = False,
        time_ordered: bool = False,
    ) -> None:
        self.lines, self.comparisons, self.rule, self.by = lines, comparisons, rule, by
        self.within_groups, self.time_ordered = within_groups, time_ordered
        several = len({line.model for line in lines}) > 1
        self._by_key = {(line.label, line.model) if several else line.label: line for line in lines}
        self._several = several

    def __getitem__(self, key: Any) -> Subgroup:
        return self._by_key[key]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._by_key)

    def __len__(self) -> int:
        return len(self._by_key)

    @property
    def flagged(self) -> list[Subgroup]:
        """The subgroups whose miscalibration stands out."""
        return [line for line in self.lines if line.stands_out]

    @property
    def untested(self) -> str:
        """Why there is no p-value of calibration; empty where there is."""
        first = self.lines[0]
        if first.p_value is not None:
            return ""
        if first.decomposition.n_groups is None:
            return "Calibration was not tested: the p-value needs draws of outcomes, and none were asked for."
        why = "rows of a group belong together, so their outcomes cannot be drawn independently"
        found = "" if first.decomposition.intervals is None else "; use the interval of the miscalibration"
        return f"No p-values of calibration: {why}{found}."

    def verdict(self, name: Callable[[object], str] = str) -> str:
        """Which subgroups are miscalibrated beyond chance, in words; `name` writes the labels."""
        if self.untested:
            return self.untested
        undecided = [line for line in self.lines if line.undecided]
        found = []
        if self.flagged:
            found.append(f"Miscalibrated beyond chance: {self._names(self.flagged, name)}.")
        if undecided:
            found.append(
                f"Not decided, because it would take too many draws: {self._names(undecided, name)}."
            )
        return " ".join(found) or "No subgroup is miscalibrated beyond chance."

    def _names(self, lines: list[Subgroup], name: Callable[[object], str]) -> str:
        return join(name(line.label) + (f" ({line.model})" if self._several else "") for line in lines)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain Python values."""
        return {
            "by": self.by,
            "rule": self.rule,
            "untested": self.untested,
            "verdict": self.verdict(),
            "within_groups": self.within_groups,
            "time_ordered": self.time_ordered,
            "subgroups": [
                {
                    "label": str(line.label),
                    "model": line.model,
                    "card": line.card.to_dict(),
                    "decomposition": line.decomposition.to_dict(),
                    "p_value": line.p_value,
                    "p_adjusted": line.p_adjusted,
                    "stands_out": line.stands_out,
                    "undecided": line.undecided,
                }
                for line in self.lines
            ],
            "comparisons": {str(label): c.to_dict() for label, c in self.comparisons.items()},
            **self._noted(),
        }

    def to_frame(self, kind: FrameKind = "pandas") -> Any:
        """One row per subgroup and model: rows, score, accuracy, components and the test of calibration."""
        rows = []
        for line in self.lines:
            score, whole = _score(line.card, self.rule), line.decomposition.whole
            rows.append(
                {
                    "by": self.by,
                    "subgroup": line.label.item() if hasattr(line.label, "item") else line.label,
                    "model": line.model,
                    "n_rows": line.card.n_rows,
                    "rule": self.rule,
                    "mean": score.mean,
                    "low": score.interval.low,
                    "high": score.interval.high,
                    "accuracy": line.card.accuracy,
                    "miscalibration": whole.miscalibration,
                    "discrimination": whole.discrimination,
                    "uncertainty": whole.uncertainty,
                    "expected_miscalibration": whole.expected_miscalibration,
                    "p_value": line.p_value,
                    "p_adjusted": line.p_adjusted,
                    "stands_out": line.stands_out,
                    "undecided": line.undecided,
                }
            )
        return record_frame(rows, kind)

    def _cells(self) -> Cells:
        header = [self.by, *(["model"] if self._several else []), "rows", self.rule, "accuracy"]
        header += ["miscalibration", "expected by chance", "p (Holm)", ""]
        rows = []
        for line in self.lines:
            score = _score(line.card, self.rule)
            whole = line.decomposition.whole
            chance = whole.expected_miscalibration
            rows.append(
                [
                    str(line.label),
                    *([line.model] if self._several else []),
                    f"{line.card.n_rows:,}",
                    f"{score.mean:.4f} ({score.interval[0]:.4f} to {score.interval[1]:.4f})",
                    f"{line.card.accuracy:.3f}",
                    f"{whole.miscalibration:.4f}" if chance is not None else whole.texts()[1],
                    "-" if chance is None else f"{chance:.4f}",
                    "-" if line.p_adjusted is None else f"{line.p_adjusted:.3f}",
                    "stands out" if line.stands_out else "",
                ]
            )
        return [header, *rows]

    def _notes(self) -> list[str]:
        notes = [WITHIN_GROUPS] if self.within_groups else []
        notes += [TIME_ORDERED] if self.time_ordered else []
        notes.append(self.verdict())
        for label, comparison in self.comparisons.items():
            leader = comparison.leader(self.rule)
            verdict = "no single best model can be told" if leader is None else f"{leader} is best"
            notes.append(f"{label}: {verdict} by {self.rule}.")
        return notes + self._said()

    def __repr__(self) -> str:
        return "\n".join([f"verax subgroups by {self.by}", *text_table(self._cells()), *self._notes()])

    def _repr_html_(self) -> str:
        return html_table(self._cells(), caption=f"verax subgroups by {self.by}", notes=self._notes())


@reads
def subgroups(
    y: object,
    p: object,
    *,
    by: object,
    rule: Rule | str | None = None,
    rules: Sequence[Rule | str] | None = None,
    ordered: bool = False,
    costs: CostsLike | None = None,
    confidence: float = 0.95,
    bootstrap: int = 100,
    seed: int = 0,
    least: int = 20,
    among: int | None = None,
    weights_are: WeightsAre = "importance",
    time_ordered: bool = False,
    **read: Unpack[Reading],
) -> Subgroups:
    """The card and the decomposition of every subgroup, and which are miscalibrated beyond chance.

    Parameters
    ----------
    y, ordered, costs
        As for `evaluate`.
    p : array, TopLists or dict
        The forecasts of one model, or of several by name, which are then compared in every subgroup.
    by : array
        (N,) labels of the subgroups. If they are the `groups` themselves, rows are taken to be independent
        within each subgroup.
    rule : rule, str or None
        What is decomposed and compared; by default RPS for ordered classes, else Brier.
    rules : list of rules, or None
        The rules on the cards, beside `rule`; by default all that fit, or the zero-one loss if `rule` is
        given.
    confidence, seed
        Level of the intervals and of the tests, and random seed.
    bootstrap : int
        The fewest draws behind a p-value of calibration; 0 for no tests. Where the decision is not clear
        after so many, more are drawn. What is far beyond all draws has the p-value of a gamma
        distribution fitted to them, made larger to be safe.
    least : int
        Subgroups with fewer rows are refused, because nothing can be said about them.
    among : int, optional
        How many subgroups there are, where these are some of them: Holm's correction counts them all.
    weights_are : {"importance", "counts"}
        As for `evaluate`.
    time_ordered : bool
        The rows are in order of time: models are compared in each subgroup as `compare` does it then. Cards
        and tests of calibration still take rows to be independent.
    **read

    Examples
    --------
    >>> import numpy as np, verax as vx
    >>> rng = np.random.default_rng(0)
    >>> q = rng.random(600)
    >>> site = np.repeat(["north", "south"], 300)
    >>> y = rng.random(600) < np.where(site == "south", q**2, q)
    >>> found = vx.subgroups(y, q, by=site)
    >>> [line.label for line in found.flagged]
    ['south']
    """
    check_count("least", least)
    chosen = parse(rule if rule is not None else "rps" if check_flag("ordered", ordered) else "brier")
    on_card = None
    if rule is not None or rules is not None:
        on_card = as_rules([chosen, *each_of("zero_one" if rules is None else rules)], "rules")
    models = {str(name): value for name, value in p.items()} if isinstance(p, Mapping) else {"model": p}
    if not models:
        raise InputError("must hold at least one model", argument="p", kind="missing")
    order_matters = needs_order([chosen, *(on_card or [])], costs=costs, ordered=ordered)
    forecasts_of = dict(pair_each(y, models, ordered=order_matters, **read))
    for forecasts in forecasts_of.values():
        forecasts.check()
    # As given: in another precision, rows that may sum to 1.00001 would be refused.
    rows: dict[str, Any] = {
        name: to_host(rows.given) if isinstance(rows, Forecasts) else models[name]
        for name, rows in forecasts_of.items()
    }
    first = next(iter(forecasts_of.values()))
    check_one_way(first.groups, "subgroups, which are decomposed")
    batch = first.batch(0, first.n_rows)
    names, outcomes = _outcomes(y, forecasts_of, read.get("classes"))
    weight = None if batch.weights is None else to_host(batch.weights)
    parts = _parts(by, first.n_rows, least)
    cluster = None if first.groups is None else first.groups.labels[first.groups.codes]
    within = cluster is not None and _within_groups(parts, cluster)
    if among is not None:
        check_count("among", among, least=len(parts))
    time_ordered = check_flag("time_ordered", time_ordered)
    plan: dict[str, Any] = {"confidence": confidence, "seed": seed}
    weighing: dict[str, Any] = {"weights_are": weights_are}
    written: dict[str, Any] = {name: read[name] for name in ("normalize", "logits") if name in read}
    in_parts = chosen.rule if isinstance(chosen, Padded) else chosen
    lines, comparisons = [], {}
    draw: dict[tuple[Any, str], Callable[[int, int], Floats]] = {}
    for label, part in parts.items():
        shared: dict[str, Any] = {
            "classes": names,
            "weights": None if weight is None else weight[part],
            "groups": None if cluster is None or within else cluster[part],
            **weighing,
        }
        y_of, p_of = take_rows(outcomes, part), {name: p[part] for name, p in rows.items()}
        for name, forecast in p_of.items():
            own = shared if isinstance(forecast, TopLists) else shared | written
            card = evaluate(y_of, forecast, ordered=ordered, costs=costs, rules=on_card, **plan, **own)
            parted = decompose(y_of, forecast, rule=in_parts, bootstrap=bootstrap, **plan, **own)
            lines.append(Subgroup(label, name, card, parted, parted.p_value, None, False))
            draw[label, name] = partial(_drawn, y_of, forecast, in_parts, seed, own)
        if len(p_of) > 1:
            comparisons[label] = compare(
                y_of,
                p_of,
                rule=chosen,
                ordered=ordered,
                time_ordered=time_ordered,
                confidence=confidence,
                **shared,
                **written,
            )
    found = Subgroups(
        _corrected(lines, 1 - confidence, draw, among or len(parts)),
        comparisons,
        name_of(chosen),
        getattr(by, "name", None) or "subgroup",
        within_groups=within,
        time_ordered=time_ordered,
    )
    return found.with_faults(faults_of(forecasts_of if isinstance(p, Mapping) else {"": first}))


def _outcomes(y: object, models: Mapping[str, Rows], classes: Any) -> tuple[Any, Any]:
    """The names of the classes, and outcomes that can be taken apart; as given where there are top lists."""
    first = next(iter(models.values()))
    if not all(isinstance(rows, Forecasts) for rows in models.values()):
        return classes, y
    assert isinstance(first, Forecasts)
    names, outcomes = first.classes, to_host(first.batch(0, first.n_rows).y)
    return names, outcomes if names is None else np.array([*names, None], dtype=object)[outcomes]


def _score(card: Scorecard, rule: str) -> CardLine:
    """The line of a rule on a card; on that of top lists the rule is padded."""
    return card.scores[rule] if rule in card.scores else card.scores[name_of(padded(parse(rule)))]


def _within_groups(parts: dict[Any, Any], cluster: Any) -> bool:
    """Whether each subgroup is one group; refused where that holds for some of several groups only."""
    alone = [label for label, part in parts.items() if (cluster[part] == cluster[part[0]]).all()]
    if len(alone) == len(parts):
        return True
    if alone:
        raise InputError(
            "must give at least two groups to every subgroup",
            argument="by",
            found=f"all rows of {join(show(label) for label in alone[:5])} belong to one group",
            values=alone,
            remedies=[Remedy("Join them with others, or leave out the groups.")],
        )
    return False


def _drawn(y: Any, p: Any, rule: Rule, seed: int, own: dict[str, Any], n: int, stage: int) -> Floats:
    """More miscalibrations by chance, from a random stream of their own."""
    found = decompose(y, p, rule=rule, bootstrap=n, seed=seed + stage, **own)
    return found.whole.calibrated


def _parts(by: object, n_rows: int, least: int) -> dict[Any, Any]:
    """The rows of each subgroup, in the order of their labels."""
    try:
        read = Groups.of(by, n_rows)
    except InputError as error:
        raise (error.replace(argument="by") if error.argument == "groups" else error) from None
    parts = {label: np.flatnonzero(read.codes == i) for i, label in enumerate(read.labels.tolist())}
    small = {label: len(rows) for label, rows in parts.items() if len(rows) < least}
    if small:
        some = join(f"{show(label)} ({n})" for label, n in list(small.items())[:5])
        raise InputError(
            f"must give at least {show(least)} rows to every subgroup",
            argument="by",
            kind="length",
            found=f"{some} {'has' if len(small) == 1 else 'have'} fewer",
            values=list(small),
            remedies=[Remedy("Join small subgroups with others."), passing("to allow them", least=1)],
        )
    return parts


def _corrected(
    lines: list[Subgroup],
    level: float,
    draw: Mapping[tuple[Any, str], Callable[[int, int], Floats]],
    among: int,
) -> list[Subgroup]:
    """With p-values from enough draws and Holm's correction over all subgroups, for each model."""
    result: dict[tuple[Any, str], Subgroup] = {(line.label, line.model): line for line in lines}
    for model in dict.fromkeys(line.model for line in lines):
        own = [line for line in lines if line.model == model]
        if any(line.p_value is None for line in own):
            continue
        share, work = level / among, Work(_WORK)
        tests = [_tested(line, share, draw[line.label, model], work) for line in own]
        adjusted = holm(np.array([test.p_value for test in tests]), among)
        for line, test, p in zip(own, tests, adjusted.tolist(), strict=True):
            out = p <= level
            result[line.label, model] = replace(
                line,
                p_value=test.p_value,
                p_adjusted=p,
                stands_out=out,
                undecided=not (out or test.could_pass(share)),
            )
    return list(result.values())


def _tested(line: Subgroup, level: float, draw: Callable[[int, int], Floats], work: Work) -> Chance:
    """The test of one subgroup, with as many draws as the level takes."""
    whole = line.decomposition.whole
    first = Chance(whole.miscalibration, whole.calibrated, whole.score)
    return settle(first, level, draw, work, (line.card.n_rows, line.decomposition.n_classes))
