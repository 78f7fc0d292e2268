"""Text that users read is plain English: the worst patterns of translated prose do not come back.

A pattern is listed with what to write instead. Code, quoted output and generated pages are not looked at.
"""

from __future__ import annotations

import ast
import re

import pytest

import verax as vx
from pages import DOCS, PAGES, ROOT, name_of

LIBRARIES = "polars|pandas|DuckDB|Spark|Dask|PyTorch|JAX|CuPy|NumPy|xarray|scikit-learn|XGBoost|LightGBM"
KINDS = "[Ff]rames?|[Rr]elations?|[Tt]ensors?|[Aa]rrays?|[Ss]corers?|[Cc]lassifiers?"
PATTERNS = {
    r"\bso (?:many|few)\b|\bas many\b": "name the quantity",
    rf"\b(?:{KINDS}) of (?:{LIBRARIES})\b": "a polars frame",
    r"\bGPUs? of NVIDIA\b": "an NVIDIA GPU",
    r"\bthat (?:are|is) there\b": "duplicate, present",
    r"\btaken? for\b(?! granted)|\btook for\b": "treated as, read as",
    r"\btakes? it that\b": "assumes",
    r"\b(?:has|have) the rest\b": "see, is in",
    r"\bstands? (?:in the|under|beside|above|below|on each|on the)\b": "is in",
    r"\bsa(?:ys|id) so\b": "notes this",
    r",\s+too[.,;:)]": "also",
    r"\bfrom (?:\d\S*|there|then|three classes|four) on\b": "at least, or more",
    r"\btoo sure\b": "overconfident",
    r"\b(?:too|are|is) timid\b": "underconfident",
    r"\bthat (?:is|are) no (?:class|classes|forecasts?|numbers?)\b": "outside the classes, invalid",
    r"\bis no (?:proper|proof|class|number)\b": "is not a",
    r"(?:^|[.:;] )Who(?:ever)? \w+s\b": "a subject, or you",
    r"\b(?:Stable|Deferred) are\b": "the subject first",
    r"\bcannot be told apart\b": "not significantly different",
    r"\bfailure of the machine\b": "system error",
    r"\banew\b": "again, renew",
    r"\bone does better by\b": "rewards misreporting",
    r"\bknowing the class frequencies\b": "predicting class frequencies",
    r"\brules? that fits?\b|\ball (?:rules )?that fit\b": "applicable",
    r"\bless what\b|\bless those\b": "minus, without",
    r"\bis expected to lose\b": "has an expected loss of",
    r"\brows? that (?:it|they|the fit) ha(?:s|ve) not seen\b": "held-out rows",
}
FOUND = {re.compile(pattern, re.MULTILINE): better for pattern, better in PATTERNS.items()}
BESIDE = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md")]
EXAMPLES = sorted((DOCS / "gallery").glob("*/plot_*.py"))
SOURCES = sorted((ROOT / "src/verax").rglob("*.py"))


def without_code(text: str) -> str:
    """A page without fenced blocks, indented code and code in the line."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "X", text)


def texts(path) -> str:
    """The texts of a source file, docstrings, messages and comments, without examples, names and code."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    found = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    found = [text for text in found if isinstance(text, str) and text.count(" ") >= 3]
    # The lines of a comment are one text.
    found += [re.sub(r"\s*#", "", block) for block in re.findall(r"(?:^ *#.*\n)+", source, re.MULTILINE)]
    return without_code(re.sub(r"^ *>>>.*(?:\n(?! *\n).*)*", "", "\n\n".join(found), flags=re.MULTILINE))


def complaints(text: str) -> list[str]:
    """Each bad pattern in a text, with what to write instead."""
    said = []
    for pattern, better in FOUND.items():
        for match in pattern.finditer(text):
            around = " ".join(text[max(0, match.start() - 40) : match.end() + 30].split())
            said.append(f"…{around}… (better: {better})")
    return said


@pytest.mark.parametrize("page", [*PAGES, *BESIDE], ids=name_of)
def test_pages(page):
    assert complaints(without_code(page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples(path):
    text = path.read_text(encoding="utf-8")
    comments = "\n".join(line for line in text.splitlines() if line.startswith("# "))
    assert complaints(text.split('"""')[1] + comments) == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT / "src/verax").as_posix())
def test_texts_of_the_source(path):
    assert complaints(texts(path)) == []


# What a public function says of itself, wherever it is.
@pytest.mark.parametrize("name", sorted(vx.__all__))
def test_first_lines_of_public_names(name):
    assert complaints(without_code((getattr(vx, name).__doc__ or "").strip().split("\n\n")[0])) == []


@pytest.mark.parametrize(
    "text",
    [
        "Frames of polars are read.",
        "Rows that are there twice.",
        "It is taken for a probability.",
        "The report says so.",
        "It works on a GPU, too.",
        "Who acts early pays.",
    ],
)
def test_the_worst_patterns_are_found(text):
    assert complaints(text)
