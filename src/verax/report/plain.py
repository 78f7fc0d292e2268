"""Plain pages: one HTML file with tables and drawings, no script and no other file."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

from verax._version import __version__
from verax.common.texts import visible
from verax.display.tables import Table
from verax.display.writing import written

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def plain_page(title: str, lines: Sequence[str], source: str) -> str:
    """A page of these parts, with its title above and its version and source below."""
    style = (files("verax.report") / "templates" / "plain.css").read_text(encoding="utf-8")
    foot = f"verax {__version__}" + (f"; {escape(source)}" if source else "")
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        f"<title>{escape(title)}</title><style>{style}</style>"
    )
    body = "\n".join([f"<h1>{escape(title)}</h1>", *lines, f'<p class="soft">{foot}</p>'])
    page = f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body><main>{body}</main></body></html>\n'
    return visible(page)


def save_page(text: str, path: str | Path) -> None:
    """Write a page: whole or not at all."""
    with written(path) as new:
        new.write_text(text, encoding="utf-8", newline="\n")


def figure(drawing: str, caption: str) -> str:
    """Drawings with what they show, in words."""
    labelled = drawing.replace("<svg ", f'<svg role="img" aria-label="{escape(caption, quote=True)}" ')
    return f"<figure>{labelled}<figcaption>{escape(caption)}</figcaption></figure>"


def table_of(table: Table, name: str) -> str:
    """A table that scrolls where it is too wide."""
    kinds = ["" if i in table.right else ' class="text"' for i, _ in enumerate(table.cells()[0])]

    def line(cells: Sequence[str], tag: str) -> str:
        own = (f"<{tag}{kind}>{escape(cell)}</{tag}>" for cell, kind in zip(cells, kinds, strict=True))
        return f"<tr>{''.join(own)}</tr>"

    head, *rows = table.cells()
    body = "".join(line(row, "td") for row in rows)
    caption = f"<caption>{escape(table.title)}</caption>" if table.title else ""
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name, quote=True)}">'
        f"<table>{caption}<thead>{line(head, 'th')}</thead><tbody>{body}</tbody></table></div>"
    )
