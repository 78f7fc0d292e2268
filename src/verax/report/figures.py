"""Figures on pages: the drawing in two widths, what it says, its key, its numbers and its downloads."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from verax.display.drawings import drawing, named, rows_height, swatch
from verax.display.figures import Figure
from verax.display.marks import Ranges

# At most so many points of a figure are told by pointer and arrow keys.
_MOST_TIPS = 240


@dataclass(frozen=True)
class Place:
    """How large a figure is drawn on screens and on phones, in pixels; heights of rows follow their number.

    Attributes
    ----------
    name : str
        The name of its class on the page.
    wide, small : tuple of int
        The width and the height on screens and on phones; without `small` there is one drawing for both.
    """

    name: str
    wide: tuple[int, int]
    small: tuple[int, int] | None = None

    def drawings(self, figure: Figure, ident: str) -> str:
        """The figure in all widths."""
        sizes = [("large", self.wide)] + ([("small", self.small)] if self.small else [])
        drawn = []
        for kind, (width, height) in sizes:
            tall = rows_height(figure) if figure.of_kind(Ranges) else height
            drawn.append(f'<div class="{kind}">{drawing(figure, width, tall, f"{ident}-{width}")}</div>')
        return "".join(drawn)


FULL = Place("full", (900, 260), (360, 220))
HALF = Place("half", (540, 300), (350, 250))
PANEL = Place("panel", (250, 230))


def figure_html(figure: Figure, ident: str, place: Place = FULL, *, heading: str = "") -> str:
    """The figure as an element of a page; `ident` is a name that nothing else on the page has."""
    title = f"<{heading}>{escape(figure.title)}</{heading}>" if heading and figure.title else ""
    said = f'<p class="says">{escape(figure.sentence)}</p>' if figure.sentence else ""
    key = "".join(f"<li>{swatch(entry)} {escape(entry.name)}</li>" for entry in figure.key())
    note = f'<p class="note">{escape(figure.notes)}</p>' if figure.notes else ""
    caption = (f'<ul class="key">{key}</ul>' if key else "") + note
    caption = f"<figcaption>{caption}</figcaption>" if caption else ""
    return (
        f'<figure class="drawn {place.name}" id="{ident}" data-tips="{escape(_tips(figure), quote=True)}">'
        f"{title}{said}{place.drawings(figure, ident)}{caption}{_numbers(figure)}</figure>"
    )


def figure_style() -> str:
    """The style of figures."""
    return _asset("figures.css")


def figure_script() -> str:
    """The script of figures: values by pointer and arrow keys, and downloads."""
    return _asset("figures.js")


def policy_for(script: str) -> str:
    """The content security policy of a page: its own script and style, and nothing is fetched."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _asset(name: str) -> str:
    return (files("verax.report") / "templates" / name).read_text(encoding="utf-8")


def _tips(figure: Figure) -> str:
    """What the figure says at its places, as shares of its width and of its height from the top."""
    across, upward = figure.ends()
    down = bool(figure.of_kind(Ranges))
    tips = figure.tips()
    every = max(1, math.ceil(len(tips) / _MOST_TIPS))
    told = []
    for tip in tips[::every]:
        x, y = figure.x.place(tip.x, across), figure.y.place(tip.y, upward)
        if 0 <= x <= 1 and 0 <= y <= 1:
            told.append([round(x, 4), round(y if down else 1 - y, 4), tip.text])
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def _numbers(figure: Figure) -> str:
    """The table of the figure, folded, with the places of its downloads."""
    head, rows = figure.table()
    name = escape(named(figure), quote=True)
    heads = "".join(f'<th scope="col"{_right(i, rows)}>{escape(text)}</th>' for i, text in enumerate(head))
    body = "".join(
        f"<tr>{''.join(f'<td{_right(i, rows)}>{escape(cell)}</td>' for i, cell in enumerate(row))}</tr>"
        for row in rows
    )
    return (
        '<details class="numbers"><summary>Numbers</summary><p class="get" hidden></p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="Numbers of {name}">'
        f"<table><caption>{name}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        "</div></details>"
    )


def _right(i: int, rows: Sequence[Sequence[str]]) -> str:
    """The class of a column of numbers."""
    texts = [row[i] for row in rows if row[i]]
    return ' class="n"' if texts and texts[0][:1] in "−0123456789∞" else ""
