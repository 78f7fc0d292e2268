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
        for name, rule in vx.rules.RULES.items()
    ]


def markup(static: str) -> str:
    """The playground as HTML, with its formulas; the rest is made by the script in the folder `static`."""
    rules = json.dumps(facts(), ensure_ascii=True).replace("</", "<\\/")
    return f"""<link rel="stylesheet" href="{static}/playground.css">
<div class="playground"><noscript>This page needs JavaScript.</noscript></div>
<script>
(() => {{
{print_rules(vx.rules.RULES, N_CLASSES)}
window.veraxRules = {{rules: {rules}, losses}};
}})();
</script>
<script src="{static}/playground.js"></script>
"""


class Playground(SphinxDirective):
    """Puts the playground into a page."""

    def run(self) -> list[nodes.Node]:
        """The markup as it is."""
        static = "../" * self.env.docname.count("/") + "_static"
        return [nodes.raw("", markup(static), format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("playground", Playground)
    return {"parallel_read_safe": True}
