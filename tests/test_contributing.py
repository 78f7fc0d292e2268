"""CONTRIBUTING.md names every place that a new rule, analysis, file format or command touches."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Places that mention the example of a list without being part of what every other one needs.
ONLY_THIS_ONE = {
    "AbsRPS": {"src/verax/wings/theory/papers/galdran.py", "src/verax/adapters/torch/losses.py"},
    "OverTime": set(),
    "tsv": set(),
    "certify": {"src/verax/__init__.pyi", "src/verax/results.py", "src/verax/cli/schemas/outputs.py"},
}


def sections() -> dict[str, str]:
    """The lists of places, by their examples."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    found = re.findall(r"^## Adding an? .*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    return {name[1]: part for part in found if (name := re.search(r"Example: `(\w+)`", part))}


def pattern(part: str) -> re.Pattern[str]:
    """What the names of the example match."""
    names = re.findall(r"`(\w+)`", part[part.index("Example: ") :])
    return re.compile(rf"\b({'|'.join(names)})\b")


def places(part: str) -> set[str]:
    return set(re.findall(r"`((?:src|tests|docs)/[\w./]+)`", part))


def test_lists_of_places_have_examples():
    assert set(sections()) == set(ONLY_THIS_ONE)


@pytest.mark.parametrize("example", ONLY_THIS_ONE)
def test_every_place_has_the_example(example):
    part = sections()[example]
    for place in places(part) - {"src/verax/common/faces.py", "tests/cli/test_help.py"}:
        path = ROOT / place
        files = [path] if path.is_file() else [own for own in path.rglob("*") if own.suffix in (".py", ".md")]
        assert any(pattern(part).search(own.read_text(encoding="utf-8")) for own in files), place


@pytest.mark.parametrize("example", ONLY_THIS_ONE)
def test_no_other_place_has_the_example(example):
    part = sections()[example]
    listed = places(part)
    for path in (ROOT / "src").rglob("*.py*"):
        name = path.relative_to(ROOT).as_posix()
        if path.suffix not in {".py", ".pyi"} or name in listed | ONLY_THIS_ONE[example]:
            continue
        inside = any(name.startswith(place) for place in listed if place.endswith("/"))
        assert inside or not pattern(part).search(path.read_text(encoding="utf-8")), name
