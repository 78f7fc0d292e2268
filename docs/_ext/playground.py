"""The playground: a page on which a forecast is moved through the triangle and all rules answer.

Everything is computed in the page, from the formulas of verax printed as JavaScript (`javascript`). What the
page does with the numbers stands in `_static/playground.js`, how it looks in `_static/playground.css`.
"""

from __future__ import annotations

import json
from typing import Any

from docutils import nodes
from javascript import print_rules
from sphinx.util.docutils import SphinxDirective

import verax as vx

N_CLASSES = 3


def facts() -> list[dict[str, Any]]:
    """What the page says about each rule."""
    return [
        {
            "name": name,
            "title": rule.title,
            "proper": rule.properties.proper.at(N_CLASSES),
            "page": f"rules/generated/{name}.html",
        }
        for name, rule in vx.RULES.items()
    ]


def markup() -> str:
    """The playground as HTML, with its formulas; the rest is made by the script."""
    rules = json.dumps(facts(), ensure_ascii=True).replace("</", "<\\/")
    return (
        '<div id="playground" class="playground"><noscript>This page computes in the browser and needs '
        "JavaScript.</noscript></div>\n<script>\n(() => {\n"
        f"{print_rules(vx.RULES, N_CLASSES)}\n"
        f"window.veraxRules = {{rules: {rules}, losses}};\n}})();\n</script>\n"
    )


class Playground(SphinxDirective):
    """Puts the playground into a page."""

    def run(self) -> list[nodes.Node]:
        """The markup as it is."""
        up = "../" * self.env.docname.count("/")
        scripts = f'<script src="{up}_static/playground.js"></script>\n'
        return [nodes.raw("", markup() + scripts, format="html")]


def add_style(app: Any, name: str, _template: str, _context: Any, _doctree: Any) -> None:
    """The style sheet is for this page alone."""
    if name == "playground":
        app.add_css_file("playground.css")


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("playground", Playground)
    app.connect("html-page-context", add_style)
    return {"parallel_read_safe": True}
