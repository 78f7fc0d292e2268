"""The page of prediction sets: one HTML file with drawings, no script and no other file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

from verax.display.figures import Dot
from verax.inference.findings import Claim
from verax.report.drawings import bars, figure, intervals, percent_text, svg
from verax.report.plain import plain_page, save_page, table_of
from verax.wings.sets.result import MOST_DRAWN, SetEvaluation, Span


def sets_page(evaluation: SetEvaluation, *, title: str = "Prediction sets", source: str = "") -> str:
    """The page as text.

    Parameters
    ----------
    evaluation : SetEvaluation
        The sets, judged.
    title : str, default "Prediction sets"
        The title of the page.
    source : str, default ""
        Where the rows come from.

    Returns
    -------
    str
        HTML that needs nothing else.
    """
    short = Claim.TOO_NARROW in evaluation.verdict.claims
    main, *others = evaluation._tables()
    lines = [
        f'<p class="verdict{" alarm" if short else ""}">{escape(evaluation.verdict)}</p>',
        *(f'<p class="soft">{escape(note)}</p>' for note in evaluation._notes()),
        table_of(main, "Coverage, sizes and scores"),
        "<h2>Sizes</h2>",
        bars(
            [(_classes(size), share) for size, share in list(evaluation.sizes.items())[:MOST_DRAWN]],
            "Share of the sets with each number of classes.",
        ),
    ]
    for name, dots in evaluation._coverages().items():
        lines += [f"<h2>Coverage by {escape(name)}</h2>", _coverage(dots, evaluation, size=name == "size")]
    if evaluation.spans:
        caption = (
            "Bars: from the lowest to the highest class of the set, with the share of sets at the right. "
            "Dots: what happened, as large as it is frequent; orange outside the set."
        )
        lines += [
            "<h2>Sets of ordered classes</h2>",
            figure(lambda width: _spans(evaluation.spans[:MOST_DRAWN], evaluation.classes, width), caption),
        ]
    lines += ["<h2>Numbers</h2>", *(table_of(table, table.title, fold=True) for table in others)]
    return plain_page(title, lines, source)


def save_sets_page(evaluation: SetEvaluation, path: str | Path, *, source: str = "") -> None:
    """Write the page: whole or not at all.

    Parameters
    ----------
    evaluation : SetEvaluation
        The sets, judged.
    path : str or path
        The file.
    source : str, default ""
        Where the rows come from.
    """
    save_page(sets_page(evaluation, source=source), path)


def _classes(size: object) -> str:
    return f"{size} {'class' if str(size) == '1' else 'classes'}"


def _coverage(dots: Sequence[Dot], evaluation: SetEvaluation, *, size: bool) -> str:
    caption = (
        f"Coverage with its {100 * evaluation.confidence:g}% interval; dashed: "
        f"{'the coverage of all sets' if evaluation.claimed is None else 'the claimed coverage'}; orange: "
        "significantly different (Holm)."
    )
    named = [dot._replace(name=_classes(dot.name)) for dot in dots] if size else dots
    return intervals(named, caption, mark=evaluation._aim, upper=1.0, text=percent_text)


def _spans(spans: Sequence[Span], names: Sequence[str], width: int) -> str:
    left, right = 20 if width > 500 else 2, 60
    step = (width - left - right) / len(names)
    parts, height = [], 26 * len(spans) + 28
    for i, span in enumerate(spans):
        at = 14 + 26 * i
        parts.append(
            f'<rect x="{left + step * span.low + 2:.1f}" y="{at - 10}" height="20" rx="3" '
            f'width="{step * (span.high - span.low + 1) - 4:.1f}" fill="var(--band)"/>'
            f'<text x="{width - right + 8}" y="{at + 4}">{span.share:.1%}</text>'
        )
        for k, share in enumerate(span.outcomes):
            if share > 0:
                colour = "var(--accent)" if span.low <= k <= span.high else "var(--warn)"
                parts.append(
                    f'<circle cx="{left + step * (k + 0.5):.1f}" cy="{at}" r="{1 + 8 * share**0.5:.1f}" '
                    f'fill="{colour}"/>'
                )
    most = max(3, int(step / 7))
    for k, name in enumerate(names):
        shown = name if len(name) <= most else f"{name[: most - 1]}…"
        parts.append(
            f'<text x="{left + step * (k + 0.5):.1f}" y="{height - 6}" text-anchor="middle">'
            f"{escape(shown)}</text>"
        )
    return svg(width, height, parts)
