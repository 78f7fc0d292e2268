"""The predictions to look at first: the rows with the largest loss, and where it comes from."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self, Unpack

import numpy as np

from verax.analyses.cases import Case, Stated, dense_case, plain_of, share_case, text_of
from verax.analyses.parts import faults_in, with_fault_recipes
from verax.analyses.worst_rows import (
    LargestRecipe,
    Worse,
    WorseRecipe,
    WorstRecipe,
    WorstRows,
    ranks_known,
    rounded_losses,
)
from verax.common.checks import check_count, check_integer
from verax.common.faces import Hidden
from verax.common.packing import UnreadableError
from verax.common.specs import Each, Valued
from verax.common.stored import only_counts
from verax.common.summaries import Summary, merges
from verax.display.tables import Column, Table, Tabled
from verax.engines.keyed import Keyed, Run
from verax.engines.keys import loss_keys
from verax.inputs.arrays import Ints
from verax.inputs.handles import Handle, Part, Recipe, Summaries
from verax.inputs.memory import open_rows
from verax.inputs.options import OutcomeOptions, reads
from verax.inputs.skipping import MaySkip
from verax.scores.base import Rule
from verax.scores.metrics import needs_order
from verax.scores.registry import RULES, as_rules, default_rules, each_of, name_of, parse


@dataclass(frozen=True, repr=False, eq=False)
class Worst(Tabled, MaySkip):
    """The worst rows by a rule, worst first.

    Attributes
    ----------
    rule : str
        The rule.
    n_rows : int
        The number of all rows.
    cases : tuple of Case
        The worst rows.
    named : bool
        Whether their ids were given.
    classes : tuple or None
        Names of the classes, if they have any.

    Examples
    --------
    >>> import verax as vx
    >>> [case.row for case in vx.worst([0, 1, 1], [0.4, 0.5, 0.1], rule="brier", n=2)]
    [2, 1]
    """

    rule: str
    n_rows: int
    cases: tuple[Case, ...]
    named: Hidden[bool] = False
    classes: Hidden[tuple[Hashable, ...] | None] = None

    def __len__(self) -> int:
        return len(self.cases)

    def __iter__(self) -> Any:
        return iter(self.cases)

    def __getitem__(self, i: int) -> Case:
        return self.cases[check_integer("i", i)]

    def plot(self, n: int = 6) -> Any:
        """Draw the forecasts of the worst rows beside what happened.

        By a rule of ordered classes these are cumulative probabilities: RPS adds up the squared distances
        between them.

        Parameters
        ----------
        n : int, default 6
            The number of rows to draw; at most 20.

        Returns
        -------
        matplotlib.figure.Figure
            The drawing.
        """
        from verax.display.cases import DrawnCase, cases_sheet
        from verax.display.plots import draw

        check_count("n", n)
        names = None if self.classes is None else [text_of(name) for name in self.classes]
        drawn = [
            DrawnCase(
                f"{'' if self.named else 'row '}{case.id}: {self.rule} {case.loss:.3g}",
                *case.distributions(names),
            )
            for case in self.cases[:n]
        ]
        return draw(cases_sheet(drawn, ordered=parse(self.rule).ordinal))

    def _frame(self) -> Table:
        """One line per case, with its forecast as the columns p_0, p_1, ...; of a list, listed_1, p_1, ..."""
        width = max(len(case.forecast) for case in self.cases)
        columns = [
            Column("row"),
            Column("id"),
            Column("outcome", value=lambda case: plain_of(case.outcome)),
            Column("rule", value=lambda _: self.rule),
            Column("loss"),
            *(Column(f"rank_by_{name}", value=partial(_rank, name)) for name in self.cases[0].ranks),
            Column("source"),
        ]
        names = self.cases[0].columns(width)
        columns += [Column(name, value=partial(_forecast, name, width)) for name in names]
        return Table(columns, self.cases)

    def _tables(self) -> list[Table]:
        others = [name for name in self.cases[0].ranks if name != self.rule]
        columns = [
            Column("id", "id" if self.named else "row", right=False),
            Column("outcome", "outcome", lambda case: text_of(case.outcome), right=False),
            Column("shown", "forecast", right=False),
            Column("loss", self.rule, ".4f", right=False),
            *(
                Column("", f"rank by {name}", value=partial(_rank, name), right=False, spare=1)
                for name in others
            ),
            Column("source", "where it comes from", right=False),
        ]
        return [Table(columns, self.cases)]

    def _heading(self) -> str:
        return f"the worst {len(self)} of {self.n_rows:,} rows by {self.rule}"

    def _notes(self) -> list[str]:
        return self.remarks

    def _renumbered(self, rows: Ints, n_given: int) -> Self:
        numbers = [int(rows[case.row]) for case in self.cases]
        cases = [
            replace(case, row=number, id=case.id if self.named else number)
            for case, number in zip(self.cases, numbers, strict=True)
        ]
        return replace(self, cases=tuple(cases))


def _forecast(name: str, width: int, case: Case) -> Any:
    return case.columns(width)[name]


def _rank(name: str, case: Case) -> int:
    return case.ranks[name]


@reads
def worst(
    y: object,
    p: object = None,
    *,
    rule: Rule | str | None = None,
    ordered: bool = False,
    n: int = 10,
    others: Sequence[Rule | str] | None = None,
    ids: object | None = None,
    **read: Unpack[OutcomeOptions],
) -> Worst:
    """The `n` rows with the largest loss, how other rules rank them, and where the loss comes from.

    Parameters
    ----------
    y
        The handle knows the ids.
    p
        Of `TopLists` a case has the list, the place of the outcome in it, and how much was left for all
        others.
    rule : Rule or str, optional
        What ranks the rows; by default the Brier score, or RPS if `ordered`. Of equal losses the first row
        comes first.
    ordered
    n : int, default 10
        The number of rows.
    others : sequence of Rule or str, optional
        Rules to rank the same rows by; by default Brier and log score, and RPS for ordinal rules.
    ids : array_like of shape (N,), optional
        Names of the rows; by default their numbers.
    **read

    Returns
    -------
    Worst
        The cases, from the largest loss on.

    See Also
    --------
    retention : How a metric changes without these rows.

    Examples
    --------
    Which mistake is worse for an outcome in the lowest of three grades? Brier and RPS disagree:

    >>> import verax as vx
    >>> p = [[0.2, 0.8, 0.0], [0.3, 0.0, 0.7]]
    >>> vx.worst([0, 0], p, rule=vx.brier, n=1)[0].row, vx.worst([0, 0], p, rule=vx.rps, n=1)[0].row
    (0, 1)
    """
    rules = ranking(default_rules(ordered=ordered)[0] if rule is None else rule, others)
    in_order = needs_order(rules, ordered=ordered)
    return find(open_rows(y, p, ordered=in_order, single=True, ids=ids, **read), rules, n)


def ranking(rule: Rule | str, others: Sequence[Rule | str] | None = None) -> list[Rule]:
    """The rule that ranks the rows, followed by the rules whose ranks are shown beside it."""
    chosen = parse(rule)
    if others is None:
        others = [RULES["brier"], RULES["log_score"], *([RULES["rps"]] if chosen.ordinal else [])]
    return as_rules([chosen, *each_of(others)])


def find(handle: Handle, rules: Sequence[Rule], n: int) -> Worst:
    """The worst rows by the first rule, with their ranks by all rules from the same or a second pass."""
    check_count("n", n)
    model, chosen = handle.one_model(), tuple(rules)
    recipes: dict[str, Recipe[Any]] = {"rows": WorstRecipe(model, chosen, n)}
    others = chosen[1:] if handle.near else ()
    recipes |= {f"largest:{i}": LargestRecipe(model, chosen, rule) for i, rule in enumerate(others)}
    summaries = handle.summarise(with_fault_recipes(handle, recipes))
    rows: WorstRows = summaries["rows"]
    losses = tuple(map(tuple, rows.losses.tolist()))
    counts = None
    if handle.near:
        counts = ranks_known(rows, [summaries[f"largest:{i}"] for i in range(len(others))])
    if counts is None and handle.has_rows:
        worse: Worse = handle.summarise({"ranks": WorseRecipe(model, chosen, losses)})["ranks"]
        counts = worse.counts
    result = read_worst(rows, handle, chosen, counts)
    return result.with_skipped(summaries.skipped).with_faults(faults_in(handle, summaries))


def read_worst(
    rows: WorstRows,
    handle: Handle,
    rules: Sequence[Rule],
    counts: Ints | None = None,
    classes: tuple[Hashable, ...] | None = None,
) -> Worst:
    """The worst rows of a handle from what was kept of them.

    `counts` says how many rows are worse by each rule; without it only their order by the first is known.
    `classes` may be called otherwise than the handle does.
    """
    classes = handle.classes if classes is None else classes
    ranked = rules if counts is not None else rules[:1]
    if counts is None:
        counts = np.array([[np.sum(rows.losses[:, 0] > loss) for loss in rows.losses[:, 0]]])
    cases = []
    for i, number in enumerate(rows.numbers.tolist()):
        name = number if rows.ids is None else rows.ids[i : i + 1].tolist()[0]
        case = _case_in(rows, i, number, name, classes, rules[0])
        ranks = {name_of(rule): 1 + int(counts[j, i]) for j, rule in enumerate(ranked)}
        cases.append(replace(case, ranks=ranks))
    return Worst(name_of(rules[0]), rows.n_rows, tuple(cases), rows.ids is not None, classes)


def _case_in(
    rows: WorstRows, i: int, number: int, name: Any, classes: tuple[Hashable, ...] | None, rule: Rule
) -> Case:
    """One of the worst rows of a handle."""
    loss, outcome = float(rows.losses[i, 0]), rows.outcomes[i]
    if isinstance(rows.forecasts, list):
        return Stated.from_values(outcome, rows.forecasts[i]).case(number, name, loss)
    if np.ndim(outcome) == 1:
        return share_case(number, name, outcome, rows.forecasts[i], loss, classes, rule)
    return dense_case(number, name, int(outcome), rows.forecasts[i], loss, classes, rule)


class LossCounts(Summary, kind="numbers of losses"):
    """How many rows have a loss in each bin, by rule; with the extremes of the losses there."""

    rules: Mapping[str, Keyed] = merges(Each(Valued(Keyed)))

    def _check(self) -> None:
        for name, bins in self.rules.items():
            if bins.total.sums.high.shape[1] != 1 or bins.total.least.shape[1] != 1:
                raise UnreadableError("has other sums than numbers of rows", "rules", name)
            only_counts(bins.total.sums.high)

    def rank(self, rule: str, loss: float) -> tuple[int, int]:
        """The smallest rank that a row of this loss can have, and by how much it can be larger."""
        return rank_in(self.rules[rule].total, 0, loss)


def rank_in(run: Run, level: int, loss: float) -> tuple[int, int]:
    """The smallest rank of a row of this loss, and by how much it can be larger, from the bins of all rows.

    Neighbouring bins were joined `level` times; the last extremes of each are those of the losses.
    """
    number = int(loss_keys(np.array([loss]), level)[0])
    place = int(np.searchsorted(run.keys, number))
    counts = run.sums.high[:, 0]
    above = int(counts[place + 1 :].sum())
    if run.most[place, -1] <= loss:
        return 1 + above, 0
    # The row with the largest loss is worse. This one is not, nor is the one with the smallest loss.
    others = int(counts[place]) - (1 if run.least[place, -1] >= loss else 2)
    return 1 + above + 1, others - 1


@dataclass(frozen=True)
class LossCountRecipe(Recipe[LossCounts], cases=True):
    """Histograms of the losses of one model by some rules."""

    model: str
    rules: tuple[Rule, ...]

    def check(self, summary: LossCounts) -> None:
        """Refuse counts by other rules."""
        if set(summary.rules) != set(map(name_of, self.rules)):
            raise UnreadableError("is about other rules", "rules")

    def take(self, part: Part) -> LossCounts:
        """Count the losses of one part."""
        losses = rounded_losses(part, self.model, self.rules)
        return LossCounts(
            {
                name_of(rule): Keyed((Run.of_values(column, loss_keys, 0, [None]),))
                for rule, column in zip(self.rules, np.ascontiguousarray(losses.T), strict=True)
            }
        )


# ---- the worst rows with their ranks ---------------------------------------------------------------


def worst_recipes(
    handle: Handle, model: str, rule: Rule, n: int, counted: Collection[Any] = ()
) -> dict[str, Recipe[Any]]:
    """The recipes for the worst rows of a model and their ranks; saved summaries may have no ranks.

    Losses by the rules `counted` are kept or counted by others. Histograms have no rows without weight, so
    they serve where no row has a weight.
    """
    rules = tuple(ranking(rule))
    lacking = tuple(other for other in rules[1:] if handle.weighted or other not in counted)
    counts = LossCountRecipe(model, lacking)
    if lacking and not handle.knows(counts):
        return {f"{model}/worst": WorstRecipe(model, rules[:1], n)}
    return {f"{model}/worst": WorstRecipe(model, rules, n)} | ({f"{model}/ranks": counts} if lacking else {})


def read_ranked(
    summaries: Summaries,
    handle: Handle,
    model: str,
    rule: Rule,
    classes: tuple[Hashable, ...] | None = None,
    counted: Callable[[str, float], tuple[int, int]] | None = None,
) -> Worst:
    """The worst rows with their ranks by all rules, from what these recipes found; `counted` gives
    other ranks.
    """
    rules, rows = tuple(ranking(rule)), summaries[f"{model}/worst"]
    worst = read_worst(rows, handle, rules, classes=classes)
    counts: LossCounts | None = summaries.by_name.get(f"{model}/ranks")
    if rows.losses.shape[1] < len(rules):
        return worst
    cases = []
    for case, losses in zip(worst.cases, rows.losses.tolist(), strict=True):
        ranks, within = dict(case.ranks), dict(case.rank_within)
        for other, loss in zip(rules[1:], losses[1:], strict=True):
            name = name_of(other)
            if counts is not None and name in counts.rules:
                ranks[name], beyond = counts.rank(name, loss)
            else:
                assert counted is not None
                ranks[name], beyond = counted(name, loss)
            within |= {name: beyond} if beyond else {}
        cases.append(replace(case, ranks=ranks, rank_within=within))
    return replace(worst, cases=tuple(cases))
