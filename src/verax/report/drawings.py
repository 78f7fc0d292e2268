"""Drawings of plain pages as SVG: intervals, bars and lines, each for screens and for phones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from verax.display.figures import Dot, Panel
from verax.display.panels import round_numbers

_STEP = 24
_SOFT_DASHES = 'stroke="var(--soft)" stroke-dasharray="5 4"'
_BESIDE = 'stroke="var(--soft)" stroke-width="1.2"'


def figure(draw: Callable[[int], str], caption: str, *, wide: int = 900, small: int = 360) -> str:
    """A drawing in two widths, with what it shows in words."""
    told = f'<svg role="img" aria-label="{escape(caption, quote=True)}" '
    drawn = "".join(
        f'<div class="{kind}">{draw(width).replace("<svg ", told, 1)}</div>'
        for kind, width in (("wide", wide), ("narrow", small))
    )
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def svg(width: float, height: float, parts: Sequence[str]) -> str:
    """The parts as one drawing."""
    return (
        f'<svg viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:{width:.0f}px" '
        f'xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
    )


def number_text(value: float) -> str:
    """A number on an axis."""
    return f"{value:.4g}".replace("-", "−")


def percent_text(value: float) -> str:
    """A share on an axis."""
    return f"{round(100 * value, 6):g}%"


def names(width: int, texts: Sequence[str]) -> tuple[float, Callable[[str, float], str]]:
    """Room for the names of lines, and how one is written at some height."""
    most = width // 20 if width < 600 else width // 28
    longest = min(most, max(map(len, texts), default=0))
    room = max(7.2 * longest + 14, 36)

    def write(text: str, at: float) -> str:
        shown = text if len(text) <= most else f"{text[: most - 1]}…"
        whole = "" if shown == text else f"<title>{escape(text)}</title>"
        return f'<text x="{room - 8:.1f}" y="{at + 4:.1f}" text-anchor="end">{whole}{escape(shown)}</text>'

    return room, write


def intervals(
    dots: Sequence[Dot],
    caption: str,
    *,
    mark: float | None = None,
    upper: float = math.inf,
    text: Callable[[float], str] = number_text,
) -> str:
    """Values with their intervals below each other; `mark` is a dashed line. Empty without a value."""
    dots = [dot for dot in dots if math.isfinite(dot.value)]
    if not dots:
        return ""
    every = [v for dot in dots for v in dot[1:4] if math.isfinite(v)] + ([] if mark is None else [mark])
    gap = 0.04 * (max(every) - min(every)) or 0.5
    low, high = min(every) - gap, min(max(every) + gap, max(upper, max(every)))
    height = _STEP * len(dots) + 28

    def draw(width: int) -> str:
        room, write = names(width, [dot.name for dot in dots])

        def x(value: float) -> float:
            return room + (width - room - 24) * (value - low) / (high - low)

        def rule(value: float, how: str) -> str:
            return f'<line x1="{x(value):.1f}" x2="{x(value):.1f}" y1="2" y2="{height - 22}" {how}/>'

        parts = []
        for place in round_numbers(low, high, 6 if width > 500 else 3):
            parts.append(rule(place, 'stroke="var(--line)"'))
            parts.append(
                f'<text x="{x(place):.1f}" y="{height - 6}" text-anchor="middle">{text(place)}</text>'
            )
        parts += [] if mark is None else [rule(mark, _SOFT_DASHES)]
        for i, dot in enumerate(dots):
            at, colour = 14 + _STEP * i, "var(--warn)" if dot.flagged else "var(--accent)"
            parts.append(write(dot.name, at))
            if math.isfinite(dot.low) and math.isfinite(dot.high):
                parts.append(
                    f'<line x1="{x(dot.low):.1f}" x2="{x(dot.high):.1f}" y1="{at}" y2="{at}" '
                    f'stroke="{colour}" stroke-width="2"/>'
                )
            parts.append(f'<circle cx="{x(dot.value):.1f}" cy="{at}" r="4" fill="{colour}"/>')
        return svg(width, height, parts)

    return figure(draw, caption)


def bars(shares: Sequence[tuple[str, float]], caption: str) -> str:
    """Shares as bars below each other, each with its number."""
    largest = max(share for _, share in shares)

    def draw(width: int) -> str:
        room, write = names(width, [name for name, _ in shares])
        parts = []
        for i, (name, share) in enumerate(shares):
            at, long = 14 + _STEP * i, (width - room - 60) * share / largest
            parts += [
                write(name, at),
                f'<rect x="{room:.1f}" y="{at - 8}" width="{long:.1f}" height="16" fill="var(--accent)"/>',
                f'<text x="{room + long + 6:.1f}" y="{at + 4}">{share:.1%}</text>',
            ]
        return svg(width, _STEP * len(shares) + 6, parts)

    return figure(draw, caption)


def lines(panel: Panel, caption: str, *, height: int, wide: int = 900) -> str:
    """The lines of a panel, with their bands, levels and marked range."""
    scale: Callable[[float], float] = math.log10 if panel.log else float
    ends = [end for line in panel.lines for band in line.bands for end in band[1:]]
    heights = [v for values in (*(line.y for line in panel.lines), *ends) for v in values]
    heights += [level for level, _ in panel.levels]
    low, high = min(map(scale, heights)), max(map(scale, heights))
    gap = 0.06 * (high - low) or 0.5
    low, high = panel.upward or (low - gap, high + gap)
    xs = [v for line in panel.lines for v in line.x]
    first, last = panel.across or (min(xs), max(xs))

    def draw(width: int) -> str:
        left, right, top, bottom = (52 if width < 600 else 64), 12, 10, 26
        across, down = width - left - right, height - top - bottom

        def x(value: float) -> float:
            return left + across * (0.5 if first == last else (value - first) / (last - first))

        def y(value: float) -> float:
            return top + down * (high - scale(value)) / (high - low)

        def points(xs: Sequence[float], ys: Sequence[float]) -> list[str]:
            return [f"{x(a):.1f},{y(b):.1f}" for a, b in zip(xs, ys, strict=True)]

        parts = []
        if panel.marked is not None:
            a, b = max(x(panel.marked[0]), left), min(x(panel.marked[1]), width - right)
            parts.append(
                f'<rect x="{a:.1f}" y="{top}" width="{b - a:.1f}" height="{down}" fill="var(--mark)"/>'
            )
        for value, text in _upright(low, high, log=panel.log):
            at = top + down * (high - value) / (high - low)
            parts.append(
                f'<line x1="{left}" x2="{width - right}" y1="{at:.1f}" y2="{at:.1f}" stroke="var(--line)"/>'
                f'<text x="{left - 6}" y="{at + 4:.1f}" text-anchor="end">{text}</text>'
            )
        for band in [band for line in panel.lines for band in line.bands]:
            around = points(band[0], band[1]) + points(band[0], band[2])[::-1]
            parts.append(f'<polygon points="{" ".join(around)}" fill="var(--band)"/>')
        for line in sorted(panel.lines, key=lambda line: not line.beside):
            look = _BESIDE if line.beside else 'stroke="var(--accent)" stroke-width="2"'
            parts.append(f'<polyline points="{" ".join(points(line.x, line.y))}" fill="none" {look}/>')
        for value, name in panel.levels:
            at = y(value)
            parts.append(
                f'<line x1="{left}" x2="{width - right}" y1="{at:.1f}" y2="{at:.1f}" {_SOFT_DASHES}/>'
                f'<text class="level" x="{left + 6}" y="{at - 5:.1f}">{name}</text>'
            )
        for place, text in _across(panel, first, last, width):
            half = 3.4 * len(text)
            at = min(max(x(place), half), width - half)
            parts.append(f'<text x="{at:.1f}" y="{height - 6}" text-anchor="middle">{escape(text)}</text>')
        return svg(width, height, parts)

    return figure(draw, caption, wide=wide, small=min(wide, 360))


def _across(panel: Panel, first: float, last: float, width: int) -> list[tuple[float, str]]:
    """Places and labels on the horizontal axis: round numbers, or times that a width has room for."""
    if not panel.times:
        return [(place, number_text(place)) for place in round_numbers(first, last, 6)]
    every = math.ceil(len(panel.times) / max(2, width // 105))
    return [(float(i), panel.times[i][:16]) for i in range(0, len(panel.times), every)]


def _upright(low: float, high: float, *, log: bool) -> list[tuple[float, str]]:
    """Places and labels on the vertical axis."""
    if not log:
        return [(place, number_text(place)) for place in round_numbers(low, high, 4)]
    step = max(1, math.ceil((high - low) / 5))
    first = math.ceil(low / step) * step
    return [
        (float(e), f"1e{e}" if abs(e) > 3 else f"{10.0**e:g}")
        for e in range(first, math.floor(high) + 1, step)
    ]
