"""The findings of all papers, and the pages that show them."""

from __future__ import annotations

import doctest
import json
import re
import shlex

import pytest
from typer.testing import CliRunner

from commandline import verax
from pages import DOCS, ROOT
from verax.cli.commands import app
from verax.wings.demo.files import FILES
from verax.wings.theory.papers.galdran import TABLES
from verax.wings.theory.papers.published import ERRATA, PAPERS, PublishedNumber, findings

ERRATA_PAGE = (DOCS / "errata.md").read_text("utf-8")


def anchor(heading: str) -> str:
    """The anchor of a heading on the site."""
    return re.sub(r"[^\w -]", "", re.sub(r"[.]", "-", heading.lower())).replace(" ", "-")


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^##+ (.+)$", text, flags=re.M)
    return {anchor(heading): body for heading, body in zip(parts[1::2], parts[2::2], strict=True)}


def test_all_findings_in_one_table():
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["reproduce", "--all"])
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    found = json.loads(verax("reproduce", "--all", "--json").stdout)
    assert len(found["findings"]) == sum(len(findings(paper)) for paper in PAPERS) > 100
    counts = found["counts"]
    assert sum(counts.values()) == len(found["findings"])
    assert counts["differs"] == 0
    assert f"{counts['agreed']} agreed, 0 differs, {counts['explained']} explained" in result.stdout
    for status, number in counts.items():
        assert sum(f["status"] == status for f in found["findings"]) == number
        assert sum(line.endswith(f"  {status}") for line in result.stdout.splitlines()) == number


def test_a_difference_without_an_explanation_is_exit_code_1(monkeypatch):
    # A table in which sa-RPS is not best, against what the paper says of all.
    rows = TABLES["ConvNeXt"]
    monkeypatch.setitem(TABLES, "ConvNeXt", (rows[3], *rows[1:3], rows[0]))
    result = CliRunner().invoke(app, ["reproduce", "--all"])
    assert result.exit_code == 1
    assert "3 differs" in result.output


@pytest.mark.parametrize("arguments", [[], ["resin", "--all"], ["--all", "--plot", "x.png"]])
def test_either_a_paper_or_all(arguments):
    result = verax("reproduce", *arguments)
    assert result.returncode == 2
    assert "--all" in result.stderr


@pytest.mark.parametrize(
    ("printed", "computed", "status"),
    [
        (0.5, 0.5004, "agreed"),
        (0.5, 0.6, "differs"),
        (float("inf"), float("inf"), "agreed"),
        ("< 0", -1.0, "agreed"),
        ("< 0", 0.0, "differs"),
        ("<= 0", 1e-15, "agreed"),
        ("> 0", 1e-15, "differs"),
        (">= 2", 1.9, "differs"),
        ("table", None, "no data"),
    ],
)
def test_statuses(printed, computed, status):
    number = PublishedNumber("", "", printed, computed)
    assert number.status == status
    explained = PublishedNumber("", "", printed, computed, section="here")
    assert explained.status == ("explained" if status == "differs" else status)


def test_the_table_of_the_errata_is_that_of_the_findings():
    rows = [f"| {e.paper}, {e.where} | [{e.printed}](#{e.section}) | {e.true} |" for e in ERRATA]
    shown = re.search(r"^\| where \| printed \| true \|\n\|.*\n((?:\|.*\n)+)", ERRATA_PAGE, re.M)
    assert shown is not None
    assert shown[1].splitlines() == rows


def test_every_section_of_the_errata_has_a_computation():
    shown = sections(ERRATA_PAGE)
    explained = {f.section for paper in PAPERS for f in findings(paper) if f.status == "explained"}
    listed = {e.section for e in ERRATA}
    assert explained <= listed <= set(shown)
    assert all(f.erratum for paper in PAPERS for f in findings(paper) if f.status != "agreed")
    for name in listed:
        # A finding of `verax reproduce`, an example that the tests run, or a command.
        assert name in explained or ">>> " in shown[name] or "`python " in shown[name], name


def test_the_spread_of_f1_over_folds_is_of_the_order_of_table_3_in_fractions():
    pandas = pytest.importorskip("pandas")
    runs = pandas.read_csv(ROOT / "studies/results/selection.csv.gz")
    columns = [f"{way}/f1/{rule}" for way in ("ES", "CP") for rule in ("brier", "pbs")]
    spread = 100 * runs[runs["trained by"] == "log"].groupby("data")[columns].std().to_numpy()
    assert (round(spread.min()), round(spread.max())) == (4, 20)


# ---- the page of each paper ----------------------------------------------------------------------


def page_of(paper: str) -> str:
    return (DOCS / "papers" / f"{paper}.md").read_text("utf-8")


def finding_text(finding: PublishedNumber) -> str:
    """The last column of the table of numbers on a paper's page."""
    if finding.status == "explained":
        return f"[explained](../errata.md#{finding.section})"
    return f"no data: {finding.erratum}" if finding.status == "no data" else finding.status


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("papers")
    shown = "".join(map(page_of, PAPERS))
    for name in (name for name in FILES if name in shown and "/" not in name):
        FILES[name](path / name)
    return path


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_shows_every_number_beside_the_computed_one(paper):
    rows = [f"| {f.where} | {f.what} | {' | '.join(f.texts)} | {finding_text(f)} |" for f in findings(paper)]
    shown = re.search(
        r"^\| where \| what \| printed \| computed \| finding \|\n\|.*\n((?:\|.*\n)+)", page_of(paper), re.M
    )
    assert shown is not None
    assert shown[1].splitlines() == rows


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_every_call_on_the_page_runs(paper, folder, monkeypatch):
    monkeypatch.chdir(folder)
    text = page_of(paper)
    names = {}
    for example in doctest.DocTestParser().get_examples(text):
        exec(compile(example.source, paper, "single"), names)
    columns = [line.split("|")[-2] for line in text.splitlines() if line.startswith("| ")]
    calls = [call for column in columns for call in re.findall(r"`([^`]+)`", column)]
    code = [call for call in calls if re.match(r"(vx|lists|true|history)\.", call)]
    commands = {call for call in calls if call.startswith("verax ")}
    assert len(code) > 10
    for call in code:
        assert eval(call, names) is not None, call
    assert "verax reproduce" in " ".join(commands)
    for command in commands:
        result = verax(*shlex.split(command)[1:])
        assert result.returncode == 0, (command, result.stderr)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_page_links_all_that_was_found_wrong(paper):
    own = [e for e in ERRATA if e.paper.lower() == paper]
    assert own
    lines = [f"- {e.where}: [{e.printed}](../errata.md#{e.section}); {e.true}." for e in own]
    assert "\n".join(lines) in page_of(paper)


@pytest.mark.parametrize("name", ["../README", "start", "glossary", "guide/index", "index", "errata"])
def test_the_pages_are_linked(name):
    text = (DOCS / f"{name}.md").read_text("utf-8")
    assert "papers/index" in text or all(f"papers/{paper}" in text for paper in PAPERS)


@pytest.mark.parametrize(
    ("word", "paper"),
    [
        ("AURSC", "galdran"),
        ("superior", "ahmadian"),
        ("h-block", "ahmadian"),
        ("comparability", "resin"),
        ("top-beta", "resin"),
    ],
)
def test_the_words_of_the_papers_are_on_their_pages_and_in_the_glossary(word, paper):
    assert word.lower() in page_of(paper).lower()
    glossary = (DOCS / "glossary.md").read_text("utf-8")
    terms = re.findall(r"^(\S.*)\n: ", glossary, re.M)
    (entry,) = (term for term in terms if word.lower() in term.lower())
    assert f"papers/{paper}.md" in glossary.split(f"\n{entry}\n")[1].split("\n\n")[0]
