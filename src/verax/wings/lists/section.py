"""The section on shorter lists: what they lose against the lists as they are, or the full distribution."""

from __future__ import annotations

from typing import Any

from verax.analyses.words import number, span, title_of
from verax.common.texts import percent
from verax.display.figures import Figure
from verax.display.marks import Ranges
from verax.inputs.handles import Recipe
from verax.inputs.memory import InMemory
from verax.report.charts import interval_named, mean_figure, row_of
from verax.report.contents import Contents, Findings
from verax.report.figures import FULL, Shown, Variant
from verax.report.problem import Problem
from verax.report.section import Answered, Asked, Section
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

    def figures(self, contents: Contents) -> dict[str, Shown]:
        """What each length loses against the longest, by score and model."""
        chosen = []
        names = list(contents.problem.models.values())
        for m, lengths in enumerate(self._of_models(contents)):
            for s, rule in enumerate(() if lengths is None else lengths.means):
                name = f"{names[m]}, {title_of(rule)}"
                chosen.append(Variant({"score": s, "model": m}, name, _figure(contents, lengths, rule)))
        return {"lengths": Shown(chosen, FULL)} if chosen else {}

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


def _figure(contents: Contents, lengths: LengthComparison | None, rule: str) -> Figure:
    """What every prediction loses against the last, by one rule."""
    assert lengths is not None
    *shorter, last = lengths.predictions
    gaps = [lengths.difference(prediction, last, rule) for prediction in shorter]
    rows = [row_of(name, gap.difference, gap.interval) for name, gap in zip(shorter, gaps, strict=True)]
    ranges = Ranges("loss above that of the longest", rows, interval_named(contents))
    return mean_figure(ranges, "loss above that of the longest", "prediction", zero=True)
