"""The section on shorter lists: what they lose against the lists as they are, or the full distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from verax.analyses.words import number, percent, span, title_of
from verax.inputs.handles import Recipe
from verax.inputs.memory import InMemory
from verax.report.charts import Values, interval_chart, interval_row, labelled
from verax.report.contents import Contents, Findings
from verax.report.problem import Problem
from verax.report.section import Answered, Asked, Section
from verax.report.vega import Spec
from verax.scores.combinators import Padded, padded
from verax.wings.lists.lengths import LengthComparison, LengthRecipe, compare_lengths, read_known_lengths


class Lengths(Section[dict[str, LengthComparison]]):
    """The lengths of every model's lists, by its name on the page; of older saved files some have none."""

    key = "lengths"
    title = "Lengths"
    after = "confusion"
    template = "lists/section.html.j2"

    def recipes(self, asked: Asked) -> dict[str, Recipe[Any]]:
        """The losses of each model's lists at several lengths."""
        if not asked.problem.lists:
            return {}
        rules = _rules(asked.problem)
        return asked.known({model: LengthRecipe(model, rules) for model in asked.handle.models})

    def read(self, found: Answered) -> dict[str, LengthComparison] | None:
        """What shorter lists would lose; None for full distributions."""
        if not found.problem.lists:
            return None
        known = {shown: _lengths(found, model) for model, shown in found.problem.models.items()}
        return {shown: lengths for shown, lengths in known.items() if lengths is not None}

    def exhibit(self, contents: Contents) -> dict[str, Any] | None:
        """What shorter lists lose; None where no list has more than one class."""
        known = self._of_models(contents)
        if not any(known):
            return None
        return {"models": [None if lengths is None else _length_table(lengths) for lengths in known]}

    def charts(self, contents: Contents) -> dict[str, Spec]:
        """What each length loses against the longest."""
        rows = length_rows(self._of_models(contents))
        if not rows:
            return {}
        drawing = interval_chart("prediction", "loss above that of the longest", from_zero=True)
        return {"lengths": labelled(drawing, rows)}

    def of_model(self, contents: Contents, model: Findings) -> dict[str, Any]:
        """The comparison of lengths of one model, if it has lists."""
        found = self.found(contents)
        if found is None:
            return {}
        lengths = found.get(model.name)
        return {"lengths": None if lengths is None else lengths.to_dict(stored=False)}

    def _of_models(self, contents: Contents) -> list[LengthComparison | None]:
        found = self.found(contents) or {}
        return [found.get(model.name) for model in contents.findings]


LENGTHS = Lengths()


def _rules(problem: Problem) -> tuple[Padded, ...]:
    """The rules by which lists of all lengths are scored."""
    return tuple(padded(rule) for rule in problem.rules)


def _lengths(found: Answered, model: str) -> LengthComparison | None:
    """What shorter lists would lose against the full distribution, or against the lists as they are."""
    problem, confidence = found.problem, found.plan.confidence
    if model in found.full:
        forecasts = InMemory({model: found.full[model]})
        return compare_lengths(forecasts, rule=list(problem.rules), confidence=confidence)
    if model not in found.answers:
        return None
    summaries = found.summaries
    return read_known_lengths(
        found.handle,
        LengthRecipe(model, _rules(problem)),
        found.answers[model],
        summaries["survey"].models[model].longest,
        summaries,
        {"": summaries[f"{model}/card"].of_lists},
        confidence,
    )


def _length_table(lengths: LengthComparison) -> dict[str, Any]:
    last = lengths.predictions[-1]
    rules = []
    for rule in lengths.means:
        rows = []
        for prediction, mean in zip(lengths.predictions, lengths[rule], strict=True):
            gap = lengths.difference(prediction, last, rule)
            rows.append((prediction, number(mean), number(gap.difference), span(gap.interval)))
        enough = {share: lengths.length_within(rule, share) for share in (0.05, 0.01)}
        whole = "the full distribution" if last == "full" else "the lists as given"
        words = "; ".join(
            f"within {percent(share)} of {whole}: {'no shorter list' if k is None else f'lists of {k}'}"
            for share, k in enough.items()
        )
        rules.append({"title": title_of(rule), "rows": rows, "words": f"{words[0].upper()}{words[1:]}."})
    sentences = zip(lengths.means, lengths.comparability(), strict=True)
    texts = [f"{title_of(rule)}{text.removeprefix(rule)}" for rule, text in sentences]
    return {"rules": rules, "last": last, "comparability": texts}


def length_rows(models: Sequence[LengthComparison | None]) -> Values:
    """A row for each model, score and prediction that is shorter than the last."""
    rows = []
    for m, lengths in enumerate(models):
        if lengths is None:
            continue
        last = lengths.predictions[-1]
        for s, rule in enumerate(lengths.means):
            for i, prediction in enumerate(lengths.predictions[:-1]):
                gap = lengths.difference(prediction, last, rule)
                n = lengths.n_rows
                rows.append(interval_row(m, s, i, prediction, i, n, gap.difference, list(gap.interval)))
    return rows
