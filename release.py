"""Write what a release states in several files, from the version, the changelog and the addresses.

`python release.py` writes CITATION.cff and the version of the conda recipe anew. `python release.py --check`
changes nothing and fails if something would have to be written; with `--tag v0.3.0` also if the tag is not
that of the version, or the addresses are missing. It needs nothing but Python.
"""

from __future__ import annotations

import argparse
import re
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parent
VERSION: str = runpy.run_path(str(ROOT / "src/verax/_version.py"))["__version__"]
ADDRESSES = runpy.run_path(str(ROOT / "src/verax/_addresses.py"))
CITATION = ROOT / "CITATION.cff"
RECIPE = ROOT / "conda/recipe.yaml"


def released() -> tuple[str, str]:
    """The newest version in the changelog and its date."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    found = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", text, re.MULTILINE)
    if found is None:
        raise SystemExit("CHANGELOG.md has no line such as: ## 0.3.0 (2026-12-01)")
    return found[1], found[2]


def citation() -> str:
    """CITATION.cff as it should be."""
    version, date = released()
    text = CITATION.read_text(encoding="utf-8")
    text = re.sub(r"^version: .*$", f"version: {version}", text, flags=re.MULTILINE)
    text = re.sub(r"^date-released: .*$", f"date-released: {date}", text, flags=re.MULTILINE)
    text = re.sub(r"^(repository-code|url): .*\n", "", text, flags=re.MULTILINE)
    places = {"repository-code": ADDRESSES["REPOSITORY"], "url": ADDRESSES["DOCUMENTATION"]}
    lines = "".join(f"{key}: {address}\n" for key, address in places.items() if address)
    return re.sub(r"^license: ", f"{lines}license: ", text, count=1, flags=re.MULTILINE)


def recipe() -> str:
    """The conda recipe with this version."""
    text = RECIPE.read_text(encoding="utf-8")
    return re.sub(r"^  version: \d.*$", f"  version: {VERSION}", text, flags=re.MULTILINE)


def problems(tag: str | None) -> list[str]:
    """What would have to change before a release."""
    found = []
    if released()[0] != VERSION:
        found.append(f"CHANGELOG.md begins with {released()[0]}, the version is {VERSION}")
    for path, text in ((CITATION, citation()), (RECIPE, recipe())):
        if text != path.read_text(encoding="utf-8"):
            found.append(f"{path.name} is out of date: run `python release.py`")
    if tag is not None:
        if tag != f"v{VERSION}":
            found.append(f"the tag is {tag}, the version is {VERSION}")
        if not (ADDRESSES["REPOSITORY"] and ADDRESSES["REGISTERED"]):
            found.append("src/verax/_addresses.py must have REPOSITORY, and REGISTERED = True")
    return found


def main() -> None:
    """Write, or check."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if something is out of date"
    )
    parser.add_argument("--tag", help="the tag of the release")
    asked = parser.parse_args()
    if not asked.check:
        CITATION.write_text(citation(), encoding="utf-8")
        RECIPE.write_text(recipe(), encoding="utf-8")
    found = problems(asked.tag)
    print("\n".join(found) if found else f"Version {VERSION} is consistent.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
