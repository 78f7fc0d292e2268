"""Where verax is published: the one place to fill before a release.

What is empty is mentioned nowhere. Package metadata, citation, documentation and hints for optional packages
follow from here; `python release.py` writes those that are files.
"""

DISTRIBUTION = "verax-scores"
# Whether DISTRIBUTION is registered on PyPI. Until then nobody is told to install it by that name: another
# project could take it.
REGISTERED = False

# Without a slash at the end.
REPOSITORY = ""
DOCUMENTATION = ""


def addresses() -> dict[str, str]:
    """The addresses that are known, by what package indexes call them.

    >>> addresses()
    {}
    """
    of_repository = {
        "Source": REPOSITORY,
        "Issues": f"{REPOSITORY}/issues",
        "Changelog": f"{REPOSITORY}/blob/main/CHANGELOG.md",
    }
    known = of_repository if REPOSITORY else {}
    return ({"Documentation": DOCUMENTATION} if DOCUMENTATION else {}) | known


def filled(page: str, version: str) -> str:
    """A page of the documentation that installs what is published instead of a checkout, where something is.

    >>> filled("pip install '.[all]'", "1.0")
    "pip install '.[all]'"
    """
    if REGISTERED:
        page = page.replace("pip install '.[", f"pip install '{DISTRIBUTION}[").replace(
            "`.[", f"`{DISTRIBUTION}["
        )
        page = page.replace("pip install .`", f"pip install {DISTRIBUTION}`")
        for checkout in (" from a checkout;", ", in a checkout", " in a checkout", " from a checkout"):
            page = page.replace(checkout, "")
    if REPOSITORY:
        page = page.replace("uses: ./verax", f"uses: {'/'.join(REPOSITORY.split('/')[-2:])}@v{version}")
        page = page.replace("repo: ../verax\n  rev: main", f"repo: {REPOSITORY}\n  rev: v{version}")
    return page
