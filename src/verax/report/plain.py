"""Plain pages: one HTML file with tables and figures, and no other file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from verax._version import __version__
from verax.common.texts import visible
from verax.display.tables import Table
from verax.display.writing import written
from verax.report.figures import figure_script, figure_style, policy_for

# Tables up to this number of lines are open.
_OPEN = 12
# The hyphen of a negative number, which is written as a minus.
_HYPHEN = re.compile(r"(?<![\w.)])-(?=[\d.∞])")


def plain_page(title: str, lines: Sequence[str], source: str) -> str:
    """A page of these parts, with its title above and its version and source below."""
    style = (files("verax.report") / "templates" / "plain.css").read_text(encoding="utf-8") + figure_style()
    script = figure_script()
    foot = f"verax {__version__}" + (f"; {escape(source)}" if source else "")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy_for(script)}">'
        f"<title>{escape(title)}</title><style>{style}</style>"
    )
    body = "\n".join([f"<h1>{escape(title)}</h1>", *lines, f"<footer>{foot}</footer>"])
    body = f"<main>{body}</main><script>{script}</script>"
    page = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'
    return visible(page)


def save_page(text: str, path: str | Path) -> None:
    """Write a page: whole or not at all."""
    with written(path) as new:
        new.write_text(text, encoding="utf-8", newline="\n")


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """The numbers that readers look for first."""
    entries = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{"".join(entries)}</dl>'


def folded(summary: str, lines: Sequence[str]) -> str:
    """Parts that open when readers ask for them."""
    return f"<details><summary>{escape(summary)}</summary>{''.join(lines)}</details>"


def table_of(table: Table, name: str, *, fold: bool = False) -> str:
    """A table, folded if it is long or `fold`; on phones each line is a block of its own."""
    head, *rows = table.cells()
    kinds = ["" if i in table.right else ' class="text"' for i, _ in enumerate(head)]

    def line(cells: Sequence[str], tag: str) -> str:
        labels = [f' data-head="{escape(text, quote=True)}"' if tag == "td" else "" for text in head]
        marked = (
            f"<{tag}{kind}{label}>{escape(_HYPHEN.sub('−', cell))}</{tag}>"
            for cell, kind, label in zip(cells, kinds, labels, strict=True)
        )
        return f"<tr>{''.join(marked)}</tr>"

    title = table.title or name
    body = "".join(line(row, "td") for row in rows)
    caption = f"<caption>{escape(table.title[:1].upper() + table.title[1:])}</caption>" if table.title else ""
    drawn = (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name, quote=True)}">'
        f"<table>{caption}<thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table></div>"
    )
    return (
        drawn
        if len(rows) <= _OPEN and not fold
        else folded(f"{title[:1].upper()}{title[1:]}, in numbers", [drawn])
    )
