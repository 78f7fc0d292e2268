"""The page of sites: one HTML file with figures, and no other file."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from pathlib import Path

from verax.inference.findings import Claim
from verax.report.figures import FULL, HALF, figure_html
from verax.report.plain import plain_page, save_page, table_of
from verax.wings.sites.figures import factor_figure, forest
from verax.wings.sites.result import SiteStudy


def sites_page(study: SiteStudy, *, title: str = "Sites", source: str = "") -> str:
    """The page as text.

    Parameters
    ----------
    study : SiteStudy
        The sites.
    title : str, default "Sites"
        The title of the page.
    source : str, default ""
        Where the rows come from.

    Returns
    -------
    str
        HTML that needs nothing else.
    """
    alarm = Claim.SITE in study.verdict.claims
    each, together = study._tables()
    lines = [
        f'<p class="verdict{" alarm" if alarm else ""}">{escape(study.verdict)}</p>',
        *(f'<p class="soft">{escape(note)}</p>' for note in study._notes()),
        table_of(together, together.title),
    ]
    figures = [(forest(study, measure), measure, FULL) for measure in study.summary]
    factors = factor_figure(study)
    if factors is not None:
        figures.append((factors, "factors", HALF))
    for figure, name, width in figures:
        lines += [f"<h2>{escape(figure.title)}</h2>", figure_html(replace(figure, title=""), name, width)]
    lines += ["<h2>Numbers</h2>", table_of(each, "Each site")]
    return plain_page(title, lines, source)


def save_sites_page(study: SiteStudy, path: str | Path, *, source: str = "") -> None:
    """Write the page: whole or not at all.

    Parameters
    ----------
    study : SiteStudy
        The sites.
    path : str or path
        The file.
    source : str, default ""
        Where the rows come from.
    """
    save_page(sites_page(study, source=source), path)
