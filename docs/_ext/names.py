"""Public names in the text, such as `evaluate` and `vx.evaluate(y, p)`, become links."""

from __future__ import annotations

import re

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.util.nodes import make_refnode

import verax as vx

# Where classes are that functions of verax return or refuse with.
PLACES = {
    name: f"{place}.{name}"
    for place in ("errors", "rules", "results", "diagrams")
    for name in getattr(vx, place).__all__
}
CALLED = re.compile(r"(?:vx|verax)\.([A-Za-z_][\w.]*)")
QUOTED = re.compile(r'(?<![`\w])"([\w./-]*(?:_|\*[\w./-]*))"(?!`)')
PLAIN = re.compile(r"([A-Za-z_]\w*)(?:\.\w+)?(?:\(\))?")


def public(text: str) -> str | None:
    """The public name that the text speaks of, if it does."""
    found = CALLED.match(text) or PLAIN.fullmatch(text)
    name = found[1].rstrip(".") if found else ""
    return name if name.partition(".")[0] in vx.__all__ else PLACES.get(name)


def link(name: str, shown: nodes.Node, document: str) -> addnodes.pending_xref:
    """A link to the page of a rule, or to the reference of the name, where there is one."""
    if name in vx.rules.RULES:
        place = {"refdomain": "", "reftype": "rule", "reftarget": f"rules/generated/{name}"}
    else:
        place = {"refdomain": "py", "reftype": "obj", "reftarget": f"verax.{name}"}
    return addnodes.pending_xref("", shown, refexplicit=True, refwarn=False, refdoc=document, **place)


def find_rule(app, env, node: addnodes.pending_xref, shown: nodes.Node) -> nodes.reference | None:
    """The page of a rule, or the reference of a function, from other pages."""
    page = node["reftarget"]
    if node["reftype"] == "obj" and page in vx.__all__:
        # Results speak of the functions that return them.
        domain = env.get_domain("py")
        return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", f"verax.{page}", node, shown)
    if node["reftype"] == "rule" and page in env.found_docs and page != node["refdoc"]:
        return make_refnode(app.builder, node["refdoc"], page, "", shown)
    return None


def name_role(role, rawtext, text, lineno, inliner, options=None, content=None):
    """Code in a docstring."""
    shown = nodes.literal(rawtext, text, classes=["xref"])
    name = public(text)
    document = inliner.document.settings.env.docname
    return [link(name, shown, document) if name else shown], []


class LinkNames(SphinxTransform):
    """Code in pages."""

    default_priority = 210

    def apply(self) -> None:
        for literal in list(self.document.findall(nodes.literal)):
            name = public(literal.astext())
            parents = (nodes.title, nodes.reference, addnodes.pending_xref)
            if name and not isinstance(literal.parent, parents):
                literal.replace_self(link(name, literal.deepcopy(), self.env.docname))


def quote_code(app, what, name, value, options, lines: list[str]) -> None:
    """Patterns and beginnings of names in quotes, such as "p_*" and "val_", are code, not markup."""
    example = False
    for i, line in enumerate(lines):
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        if not example:
            lines[i] = QUOTED.sub(r'``"\1"``', line)


def leave_out(app, what, name, value, skip, options) -> bool | None:
    """Methods that scikit-learn adds to every estimator are explained there."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app) -> dict[str, bool]:
    """Register the role and the transform."""
    app.add_role("name", name_role)
    app.add_transform(LinkNames)
    app.connect("missing-reference", find_rule)
    app.connect("autodoc-skip-member", leave_out)
    app.connect("autodoc-process-docstring", quote_code)
    return {"parallel_read_safe": True}
