"""Whether a build is to be fast: VERAX_DOCS_FAST=1 in the environment.

Such a build is for looking at single pages, and for the test that opens the site in a browser. It has the
page of one rule and one page of the reference, but no gallery, notebooks, studies, changelog and pictures of
the theory. Links to what is left out are not checked then.
"""

from __future__ import annotations

import os

FAST = os.environ.get("VERAX_DOCS_FAST", "") not in ("", "0")
RULE = "rps"
WARNINGS = [
    "image.not_readable",
    "toc.not_included",
    "myst.xref_missing",
    "ref.doc",
    "toc.excluded",
    "toc.not_readable",
]
