"""The page of prediction sets: one HTML file with drawings, no script and no other file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from verax.analyses.sets.result import CoverageLine, SetEvaluation, Span
from verax.inference.findings import Claim
from verax.report.plain import figure, plain_page, save_page, table_of

_WIDTH, _LEFT, _RIGHT = 640, 130, 60
# Of more lines or spans the first are drawn; the tables have all.
_MOST = 25


def sets_page(found: SetEvaluation, *, title: str = "Prediction sets", source: str = "") -> str:
    """The page as text.

    Parameters
    ----------
    found : SetEvaluation
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
    short = Claim.TOO_NARROW in found.verdict.claims
    main, *others = found._tables()
    lines = [
        f'<p class="verdict{" alarm" if short else ""}">{escape(found.verdict)}</p>',
        *(f'<p class="soft">{escape(note)}</p>' for note in found._notes()),
        table_of(main, "Coverage, sizes and scores"),
        "<h2>Sizes</h2>",
        figure(_sizes(found.sizes), "Share of the sets with each number of classes."),
    ]
    for name, own in {"size": found.by_size, "class": found.by_class, **found.by}.items():
        if own:
            lines += [
                f"<h2>Coverage by {escape(name)}</h2>",
                figure(_coverage(own[:_MOST], found), _caption(found)),
            ]
    if found.spans:
        caption = (
            "Bars: from the lowest to the highest class of the set, with the share of sets at the right. "
            "Dots: what happened, as large as it is frequent; orange outside the set."
        )
        lines += [
            "<h2>Sets of ordered classes</h2>",
            figure(_spans(found.spans[:_MOST], found.classes), caption),
        ]
    lines += ["<h2>Numbers</h2>", *(table_of(table, table.title) for table in others)]
    return plain_page(title, lines, source)


def save_sets_page(found: SetEvaluation, path: str | Path, *, source: str = "") -> None:
    """Write the page: whole or not at all.

    Parameters
    ----------
    found : SetEvaluation
        The sets, judged.
    path : str or path
        The file.
    source : str, default ""
        Where the rows come from.
    """
    save_page(sets_page(found, source=source), path)


def _caption(found: SetEvaluation) -> str:
    target = "the coverage of all sets" if found.claimed is None else "the claimed coverage"
    level = f"{100 * found.confidence:g}%"
    return f"Coverage with its {level} interval; dashed: {target}; orange: significantly different (Holm)."


def _svg(height: float, parts: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height:.0f}" style="max-width:{_WIDTH}px" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def _x(share: float, low: float = 0.0) -> float:
    """Where a share lies on an axis from `low` to 1."""
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (share - low) / (1 - low)


def _name(text: object, at: float) -> str:
    shown = str(text)
    shown = shown if len(shown) <= 18 else f"{shown[:17]}…"
    return f'<text x="{_LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{escape(shown)}</text>'


def _sizes(sizes: Mapping[int, float]) -> str:
    largest = max(sizes.values())
    parts = []
    for i, (size, share) in enumerate(list(sizes.items())[:_MOST]):
        at = 12 + 22 * i
        width = (_WIDTH - _LEFT - _RIGHT) * share / largest
        parts += [
            _name(f"{size:,} {'class' if size == 1 else 'classes'}", at),
            f'<rect x="{_LEFT}" y="{at - 8}" width="{width:.1f}" height="16" fill="var(--accent)"/>',
            f'<text x="{_LEFT + width + 6:.1f}" y="{at + 4}">{share:.1%}</text>',
        ]
    return _svg(22 * min(len(sizes), _MOST) + 6, parts)


def _coverage(lines: Sequence[CoverageLine], found: SetEvaluation) -> str:
    target = found.coverage.value if found.claimed is None else found.claimed
    ends = [line.interval.low if line.interval.defined else line.coverage for line in lines]
    low = max(0.0, int(10 * min([target, *ends]) - 0.3) / 10)
    low = min(low, 0.9)
    height = 22 * len(lines) + 26
    parts = []
    for i in range(6):
        share = low + (1 - low) * i / 5
        parts.append(
            f'<line x1="{_x(share, low):.1f}" x2="{_x(share, low):.1f}" y1="2" y2="{height - 20}" '
            f'stroke="var(--line)"/><text x="{_x(share, low):.1f}" y="{height - 5}" text-anchor="middle">'
            f"{share:.0%}</text>"
        )
    at_target = _x(target, low)
    parts.append(
        f'<line x1="{at_target:.1f}" x2="{at_target:.1f}" y1="2" y2="{height - 20}" stroke="var(--soft)" '
        'stroke-dasharray="5 4"/>'
    )
    for i, line in enumerate(lines):
        at, colour = 14 + 22 * i, "var(--warn)" if line.flagged else "var(--accent)"
        parts.append(_name(line.label, at))
        if line.interval.defined:
            a, b = (_x(end, low) for end in line.interval)
            parts.append(
                f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{at}" y2="{at}" stroke="{colour}" stroke-width="2"/>'
            )
        parts.append(f'<circle cx="{_x(line.coverage, low):.1f}" cy="{at}" r="4" fill="{colour}"/>')
    return _svg(height, parts)


def _spans(spans: Sequence[Span], names: Sequence[str]) -> str:
    step = (_WIDTH - 20 - _RIGHT) / len(names)
    parts, height = [], 26 * len(spans) + 28
    for i, span in enumerate(spans):
        at = 14 + 26 * i
        parts.append(
            f'<rect x="{20 + step * span.low + 2:.1f}" y="{at - 10}" height="20" rx="3" '
            f'width="{step * (span.high - span.low + 1) - 4:.1f}" fill="var(--band)"/>'
            f'<text x="{_WIDTH - _RIGHT + 8}" y="{at + 4}">{span.share:.1%}</text>'
        )
        for k, share in enumerate(span.outcomes):
            if share > 0:
                colour = "var(--accent)" if span.low <= k <= span.high else "var(--warn)"
                parts.append(
                    f'<circle cx="{20 + step * (k + 0.5):.1f}" cy="{at}" r="{1 + 8 * share**0.5:.1f}" '
                    f'fill="{colour}"/>'
                )
    most = max(3, int(step / 7))
    for k, name in enumerate(names):
        shown = name if len(name) <= most else f"{name[: most - 1]}…"
        parts.append(
            f'<text x="{20 + step * (k + 0.5):.1f}" y="{height - 6}" text-anchor="middle">'
            f"{escape(shown)}</text>"
        )
    return _svg(height, parts)
