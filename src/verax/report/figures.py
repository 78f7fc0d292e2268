"""Figures on pages: the drawing in two widths, what it says, its key, its numbers and its downloads."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from verax.display.drawings import drawing, named, rows_height, swatch
from verax.display.figures import Figure, Sheet
from verax.display.marks import Ranges

# The most points of a figure that pointer and arrow keys tell.
_MOST_TIPS = 120


@dataclass(frozen=True)
class Frame:
    """How large a figure is drawn on screens and on phones, in pixels; heights of rows follow their number.

    Attributes
    ----------
    name : str
        The name of its class on the page.
    wide, small : tuple of int
        The width and the height on screens and on phones; without `small` there is one drawing for both.
    says, key : bool
        Whether its sentence is above it, and its key below it; small multiples have them beside all.
    """

    name: str
    wide: tuple[int, int]
    small: tuple[int, int] | None = None
    says: bool = True
    key: bool = True

    def drawings(self, figure: Figure, ident: str) -> str:
        """The figure in all widths."""
        sizes = [("large", self.wide)] + ([("small", self.small)] if self.small else [])
        drawn = []
        for kind, (width, height) in sizes:
            tall = rows_height(figure) if figure.of_kind(Ranges) else height
            drawn.append(f'<div class="{kind}">{drawing(figure, width, tall, f"{ident}-{width}")}</div>')
        return "".join(drawn)


FULL = Frame("full", (900, 260), (360, 220))
HALF = Frame("half", (540, 300), (350, 250))
SINGLE = Frame("single", (400, 380), (330, 320), says=False)
PANEL = Frame("panel", (220, 210), says=False, key=False)


@dataclass(frozen=True)
class Variant:
    """A figure that is shown when readers choose this: the numbers of a model, a score and a metric."""

    choice: Mapping[str, int]
    name: str
    figure: Figure


@dataclass(frozen=True)
class Shown:
    """The figures of a place of a page, of which one is seen; without a script, all of them."""

    chosen: Sequence[Variant]
    place: Frame = HALF

    def key(self) -> str:
        """What is drawn in any of them."""
        return key_html([chosen.figure for chosen in self.chosen])

    def html(self, ident: str) -> str:
        """All of them, as parts of a page."""
        parts = []
        for k, (choice, name, figure) in enumerate((c.choice, c.name, c.figure) for c in self.chosen):
            data = "".join(f' data-{signal}="{number}"' for signal, number in choice.items())
            whose = f'<p class="whose"><bdi>{escape(name)}</bdi></p>' if len(self.chosen) > 1 else ""
            drawn = figure_html(figure, f"{ident}-{k}", self.place)
            parts.append(f'<div class="variant"{data}>{whose}{drawn}</div>')
        return "".join(parts)


def figure_html(figure: Figure, ident: str, place: Frame = FULL, *, heading: str = "") -> str:
    """The figure as an element of a page; `ident` is a name that nothing else on the page has."""
    title = f"<{heading}>{escape(figure.title)}</{heading}>" if heading and figure.title else ""
    says = figure.sentence if place.says else ""
    said = f'<p class="says">{escape(says)}</p>' if says else ""
    key = key_html([figure]) if place.key else ""
    note = f'<p class="note">{escape(figure.notes)}</p>' if figure.notes else ""
    caption = f"<figcaption>{key}{note}</figcaption>" if key or note else ""
    return (
        f'<figure class="drawn {place.name}" id="{ident}" data-tips="{escape(_tips(figure), quote=True)}">'
        f"{title}{said}{place.drawings(figure, ident)}{caption}{_numbers(figure)}</figure>"
    )


def key_html(figures: Sequence[Figure]) -> str:
    """What is drawn in any of the figures."""
    entries = Sheet(figures).key_entries()
    lines = "".join(f"<li>{swatch(entry)} {escape(entry.name)}</li>" for entry in entries)
    return f'<ul class="key">{lines}</ul>' if lines else ""


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
    # The first column is that of names.
    words = ["", *(_in_words(row[i] for row in rows) for i in range(1, len(head)))]
    heads = "".join(
        f'<th scope="col"{kind}>{escape(text)}</th>' for text, kind in zip(head, words, strict=True)
    )
    lines = (zip(row, words, strict=True) for row in rows)
    body = "".join(f"<tr>{''.join(f'<td{k}>{escape(cell)}</td>' for cell, k in line)}</tr>" for line in lines)
    return (
        '<details class="numbers"><summary>Numbers</summary><p class="get" hidden></p>'
        f'<div class="scroll" tabindex="0" role="region" aria-label="Numbers of {name}">'
        f"<table><caption>{name}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        "</div></details>"
    )


def _in_words(cells: Iterable[str]) -> str:
    """The class of a column that has texts."""
    first = next((cell for cell in cells if cell), "")
    return "" if first[:1] in "−0123456789∞" else ' class="t"'
