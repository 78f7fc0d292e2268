"""How Sphinx builds the site. VERAX_DOCS_FAST=1 in the environment leaves much out (docs/_ext/fast.py)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext")]

# Keras takes TensorFlow unless told otherwise.
os.environ.setdefault("KERAS_BACKEND", "torch")

from fast import FAST, WARNINGS  # noqa: E402
from numpydoc.xref import DEFAULT_LINKS  # noqa: E402
from related import links  # noqa: E402

import verax  # noqa: E402

# The pages of the reference that a fast build leaves out.
REFERENCE = [page for page in HERE.glob("api/*.md") if page.stem not in ("index", "scoring")]

project = "verax"
author = "The verax developers"
version = release = verax.__version__
language = "en"
nitpicky = False

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Of our own, in docs/_ext.
    "blocks",
    "copies",
    "darkfigures",
    "formulas",
    "names",
    "notebooks",
    "pictures",
    "theorypictures",
    "playground",
    "rulepages",
    "searching",
    "stale",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_ext", "_templates", "gallery", "**/.ipynb_checkpoints"]
suppress_warnings = ["config.cache", "myst.header"]
if FAST:
    extensions.remove("sphinx_gallery.gen_gallery")
    exclude_patterns += [f"api/{page.name}" for page in REFERENCE]
    exclude_patterns += ["studies/generated", "notebooks/generated", "examples", "changelog.md"]
    suppress_warnings += WARNINGS

myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

autosummary_generate = ["api/scoring.md"] if FAST else [f"api/{page.name}" for page in HERE.glob("api/*.md")]
# Pages of the reference begin with links to the guide and to examples.
autosummary_context = {
    "related": links(gallery=not FAST),
    # The pages of these classes also have the members of their bases, but for those that all results share.
    "inherited": {"verax.results.Scorecard": "Tabled, MaySkip, Result"},
}
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
# Types of parameters and of what is returned are links, if they are classes of verax.
numpydoc_xref_param_type = True
numpydoc_xref_aliases = (
    {name: f"verax.results.{name}" for name in verax.results.__all__}
    | {name: f"verax.{name}" for name in ("TopLists", "Forecasts", "Tally", "ConfidenceSequence")}
    | {"Rule": "verax.rules.Rule", "Report": "verax.report.Report"}
)
numpydoc_xref_ignore = "all"
# Other sites are not linked.
DEFAULT_LINKS.clear()
# `name` in a docstring is code; names that are public become links (docs/_ext/names.py).
default_role = "name"

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "examples",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "reference_url": {"verax": None},
    "write_computation_times": False,
    "abort_on_example_error": True,
    "nested_sections": False,
    "image_scrapers": ("darkfigures.scrape",),
    # Examples print what they want to show; a figure needs no name beside it.
    "capture_repr": (),
    "subsection_order": [
        f"gallery/{name}" for name in ("scores", "models", "calibration", "decisions", "lists", "rules")
    ],
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "verax"
html_static_path = ["_static"]
html_favicon = "_static/mark.svg"
html_css_files = ["verax.css"]
html_js_files = ["verax.js"]
html_search_scorer = str(HERE / "_ext" / "scorer.js")
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_sidebars = {
    name: []
    for name in (
        "index",
        "start",
        "choose",
        "playground",
        "paths",
        "coming",
        "faq",
        "glossary",
        "errata",
        "references",
        "benchmarks",
        "tested",
        "changelog",
        "architecture",
    )
}
html_theme_options = {
    "navbar_start": ["wordmark"],
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "show_prev_next": True,
    # Notebooks take the whole width: what they print has long lines.
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []}
    | {f"notebooks/generated/{path.stem}": [] for path in HERE.glob("notebooks/*.ipynb")},
    "footer_start": [],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
