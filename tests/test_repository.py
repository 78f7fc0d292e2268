"""What stands beside the package: how to cite it, forms, and the quality gate elsewhere."""

from __future__ import annotations

import csv
import importlib.util
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import unquote

import pytest

import verax as vx
from verax import _addresses

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]


def read(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


@pytest.fixture(params=["bin", "Scripts"])
def bin_folder(request, tmp_path):
    """A folder with the command `verax`, as an installation has it, on Windows too."""
    folder = tmp_path / "verax" / request.param
    folder.mkdir(parents=True)
    command = folder / "verax"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m verax "$@"\n')
    command.chmod(0o755)
    return folder


@pytest.fixture
def predictions(tmp_path):
    """Two rows that are right and one that is wrong, in a file whose name has a space."""
    path = tmp_path / "of today.csv"
    path.write_text("grade,p_a,p_b\na,0.9,0.1\nb,0.2,0.8\nb,0.7,0.3\n")
    return path


def test_the_citation_has_what_the_format_requires():
    cited = read("CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(cited)
    assert (cited["cff-version"], cited["version"], cited["type"]) == ("1.2.0", vx.__version__, "software")
    assert cited["license"] == "BSD-3-Clause"
    known = {rule.reference for rule in vx.rules.RULES.values()}
    for work in cited["references"]:
        assert {"type", "title", "authors", "year"} <= set(work)
        assert all({"family-names", "given-names"} == set(author) for author in work["authors"])
        assert re.match(r"10\.\d{4,}/", work["doi"]) if "doi" in work else work["url"].startswith("https://")
        assert f"doi:{work['doi']}" in known if "doi" in work else "jmlr" in work["url"]


REFERENCES = re.findall(
    r"^- (.+?) \((\d{4})\)\. .*\n  \[doi:(\S+)\]\((\S+)\)",
    (ROOT / "docs/references.md").read_text("utf-8"),
    re.MULTILINE,
)


def test_references_are_well_formed():
    listed = [doi for _, _, doi, _ in REFERENCES]
    assert len(listed) == len(set(listed)) > 60
    for _, _, doi, link in REFERENCES:
        assert re.fullmatch(r"10\.\d{4,5}/[^\s\"]+[^\s\".,]", doi)
        assert unquote(link) == f"https://doi.org/{doi}"


def test_every_doi_is_in_the_list_of_references():
    folders = ("src", "docs", "studies", "benchmarks", "man")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    paths = [path for path in paths if path.suffix in (".py", ".md", ".ipynb", ".rst", ".cff", ".1")]
    unlisted, used = [], set()
    # The longest first, because some begin alike.
    known = sorted((doi for _, _, doi, _ in REFERENCES), key=len, reverse=True)
    for path in [*paths, ROOT / "CITATION.cff", ROOT / "README.md"]:
        if path == ROOT / "docs/references.md":
            continue
        text = unquote(path.read_text("utf-8")).replace("\\-", "-")
        for doi in known:
            if doi in text:
                used.add(doi)
                text = text.replace(doi, "")
        unlisted += [f"{path.name}: {found}" for found in re.findall(r"\b10\.\d{4,5}/\S+", text)]
    assert unlisted == []
    # Works that the theory rests on are listed though no page gives their DOI.
    assert set(known) - used <= {doi for authors, _, doi, _ in REFERENCES if authors in BACKGROUND}


BACKGROUND = ("Bernardo", "Murphy", "Savage")


def test_years_beside_a_doi_are_those_of_the_references():
    years = {doi: year for _, year, doi, _ in REFERENCES}
    compared = 0
    for path in (ROOT / "src").rglob("*.py"):
        for year, doi in re.findall(r"(\d{4})\)?,\s+doi:([^\s\"`]+?)[,;.)]*\s", path.read_text("utf-8")):
            assert years.get(doi, year) == year, (path.name, doi)
            compared += doi in years
    assert compared > 40


@pytest.mark.parametrize("name", ["bug", "wrong-number", "question"])
def test_forms_of_issues(name):
    form = read(f".github/ISSUE_TEMPLATE/{name}.yml")
    assert form["name"]
    assert form["description"]
    fields = [part for part in form["body"] if part["type"] != "markdown"]
    assert len({part["id"] for part in fields}) == len(fields)
    assert all(part["attributes"]["label"] for part in fields)
    assert any(part.get("validations", {}).get("required") for part in fields)


@pytest.mark.parametrize(
    ("bounds", "code"),
    [pytest.param("accuracy>0.6\n\nbrier<0.5", 0, marks=pytest.mark.long), ("accuracy>0.6\nbrier<0.1", 1)],
)
def test_the_action_holds_files_against_bounds(bounds, code, bin_folder, predictions):
    action = read("action.yml")
    *_, step = action["runs"]["steps"]
    inputs = {"file": str(predictions), "require": bounds, "arguments": "--target\ngrade\n--json\n"}
    given = {
        name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda m: inputs[m[1]], v)
        for name, v in step["env"].items()
    }
    assert set(inputs) | {"python"} == set(action["inputs"])
    found = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        env={**os.environ, **given, "RUNNER_TEMP": str(bin_folder.parents[1])},
        capture_output=True,
        text=True,
    )
    assert found.returncode == code, found.stderr
    assert '"accuracy"' in found.stdout


@pytest.mark.parametrize(
    ("bound", "code"), [("accuracy>0.6", 0), pytest.param("accuracy>0.7", 1, marks=pytest.mark.long)]
)
def test_the_hook_holds_files_against_bounds(bound, code, bin_folder, predictions):
    (hook,) = read(".pre-commit-hooks.yaml")
    assert {"id", "name", "entry", "language"} <= set(hook)
    assert re.search(hook["files"], predictions.name)
    assert not hook["pass_filenames"]
    program, *arguments = shlex.split(hook["entry"])
    command = [
        str(bin_folder / program),
        *arguments,
        str(predictions),
        "--target",
        "grade",
        "--require",
        bound,
    ]
    assert subprocess.run(command, capture_output=True).returncode == code


def test_the_image_copies_what_is_there():
    copied = re.findall(r"^COPY (?!--)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    for name in " ".join(copied).split():
        assert (ROOT / name).exists()
        assert f"!{name}" in allowed


def test_the_page_on_tests_says_what_there_is():
    page = (ROOT / "docs" / "tested.md").read_text(encoding="utf-8")
    vectors = json.loads((ROOT / "tests" / "vectors.json").read_text(encoding="utf-8"))
    with (ROOT / "studies" / "results" / "coverage.csv").open(encoding="utf-8") as file:
        claims = list(csv.DictReader(file))
    assert f"{len(vectors):,} reference values" in page
    outside = sum(claim["holds"] == "no" for claim in claims)
    assert f"| {len(claims):,} claims on coverage, size and power | {outside}, " in page
    threats = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    for name in re.findall(r"`((?:tests|studies)/[^`]*)`", page + threats):
        assert (ROOT / name).exists(), name


# ---- what a release needs ----------------------------------------------------------------------

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def steps_of(workflow):
    return [step for job in workflow["jobs"].values() for step in job.get("steps", [])]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_what_they_use_and_call_what_is_there(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for step in steps_of(workflow):
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step.get("uses", "a/b@" + "0" * 40))
        assert set(re.findall(r"^make (\S+)", step.get("run", ""), re.MULTILINE)) <= set(targets)
    # Each commit has the version beside it.
    lines = [line for line in path.read_text().splitlines() if "uses: " in line and "@" in line]
    assert all(re.search(r"# v\d+\.\d+\.\d+$", line) for line in lines)


def test_what_is_published_is_what_was_tested():
    build = read(".github/workflows/tests.yml")["jobs"]["build"]["steps"]
    systems = read(".github/workflows/tests.yml")["jobs"]["systems"]
    release = read(".github/workflows/release.yml")["jobs"]
    (uploaded,) = [step["with"]["name"] for step in build if "upload-artifact" in step.get("uses", "")]
    for steps in (systems["steps"], release["publish"]["steps"]):
        assert uploaded in [step.get("with", {}).get("name") for step in steps]
    assert release["publish"]["needs"] == "tests"
    assert release["publish"]["permissions"] == {"id-token": "write"}
    assert systems["strategy"]["matrix"]["python"] == [
        text.rpartition(" ")[2] for text in project()["classifiers"] if re.search(r":: 3\.\d+$", text)
    ]


def project():
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_conda_recipe_has_the_dependencies_of_the_package():
    stated = [text.partition(";")[0].replace(">=", " >=") for text in project()["dependencies"]]
    recipe = read("conda/recipe.yaml")
    assert recipe["requirements"]["run"] == [f"python {project()['requires-python']}", *stated]
    assert recipe["package"]["name"] == project()["name"]


def test_the_page_on_dependencies_names_all_of_the_base_install():
    page = (ROOT / "docs/internals/dependencies.md").read_text(encoding="utf-8")
    names = [re.split(r"[>;]", text)[0] for text in project()["dependencies"]]
    table = page.partition("## ")[0]
    assert all(f"`{name}`" in table for name in names)
    assert "nine dependencies" in page
    assert len(names) == 9


def test_constraints_fit_the_dependencies():
    requirements = pytest.importorskip("packaging.requirements")
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {}
    for line in map(requirements.Requirement, (line for line in lines if not line.startswith("#"))):
        pinned.setdefault(line.name, []).append(next(iter(line.specifier)).version)
    extras = project()["optional-dependencies"]
    wanted = [*project()["dependencies"], *extras["plot"], *extras["report"], *extras["sklearn"]]
    for need in map(requirements.Requirement, wanted):
        assert all(need.specifier.contains(version) for version in pinned[need.name]), need


@pytest.fixture
def checkout(tmp_path):
    """A copy of the files that a release is made from."""
    for name in ("release.py", "CITATION.cff", "CHANGELOG.md", "conda/recipe.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    (tmp_path / "src" / "verax").mkdir(parents=True)
    for name in ("_version.py", "_addresses.py"):
        shutil.copyfile(ROOT / "src" / "verax" / name, tmp_path / "src" / "verax" / name)
    return tmp_path


def released(folder, *arguments):
    command = [sys.executable, str(folder / "release.py"), *arguments]
    found = subprocess.run(command, capture_output=True, text=True)
    return found.returncode, found.stdout


def test_files_state_the_version_of_the_package():
    assert released(ROOT, "--check") == (0, f"Version {vx.__version__} is consistent.\n")


def publish(folder):
    """Fill in where verax is published."""
    file = folder / "src" / "verax" / "_addresses.py"
    text = re.sub(
        r"^REPOSITORY = .*$", 'REPOSITORY = "https://example.org/a/b"', file.read_text(), flags=re.M
    )
    file.write_text(re.sub(r"^REGISTERED = .*$", "REGISTERED = True", text, flags=re.M))
    return runpy.run_path(str(file))


def test_a_release_is_made_by_filling_one_file(checkout):
    tag = f"v{vx.__version__}"
    assert released(checkout, "--check", "--tag", "v9.9.9")[0] == 1
    if not _addresses.REPOSITORY:
        code, said = released(checkout, "--check", "--tag", tag)
        assert (code, said.count("_addresses.py")) == (1, 1)
    publish(checkout)
    assert "CITATION.cff is out of date" in released(checkout, "--check", "--tag", tag)[1]
    assert released(checkout)[0] == 0
    assert released(checkout, "--check", "--tag", tag)[0] == 0
    cited = yaml.safe_load((checkout / "CITATION.cff").read_text(encoding="utf-8"))
    assert cited["repository-code"] == "https://example.org/a/b"


def test_pages_name_what_is_published(checkout):
    pages = [ROOT / name for name in ("README.md", "docs/guide/automation.md", "docs/guide/training.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages]
    if not (_addresses.REPOSITORY or _addresses.REGISTERED):
        assert _addresses.addresses() == {}
        assert [_addresses.filled(text, "1.0") for text in texts] == texts
    there = publish(checkout)
    together = "".join(there["filled"](text, "1.0") for text in texts)
    assert "install '.[" not in together
    assert "checkout;" not in together
    assert "uses: a/b@v1.0" in together
    assert "repo: https://example.org/a/b\n  rev: v1.0" in together
    assert there["addresses"]()["Issues"] == "https://example.org/a/b/issues"


def test_commands_are_completed_in_the_shell():
    asked = {"_VERAX_COMPLETE": "complete_bash", "COMP_WORDS": "verax eva", "COMP_CWORD": "1"}
    command = [sys.executable, "-c", "from verax.cli.app import app; app(prog_name='verax')"]
    found = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True)
    assert found.stdout.split() == ["evaluate", "evals"]


def loaded(name):
    """A file of Python that is no part of the package."""
    spec = importlib.util.spec_from_file_location(Path(name).stem, ROOT / name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_manual_page_is_that_of_the_commands():
    write = loaded("man/write.py")
    if "Predictions: .csv" not in write.page():
        pytest.skip("this typer does not keep the help of arguments")
    assert write.PAGE.read_text(encoding="utf-8") == write.page(), "run `make man`"
    if shutil.which("groff") is not None:
        shown = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", "-z", str(write.PAGE)], capture_output=True, text=True
        )
        assert (shown.returncode, shown.stderr) == (0, "")


def test_the_changelog_begins_with_this_version():
    first = re.search(r"^## (\S+) \((\d{4}-\d\d-\d\d)\)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert first is not None
    assert first[1] == vx.__version__
    assert str(read("CITATION.cff")["date-released"]) == first[2]


def test_the_readme_of_package_indexes_has_no_links_that_lead_nowhere():
    pytest.importorskip("hatchling")
    readme = (ROOT / "README.md").read_text()
    text = loaded("hatch_build.py").readme(readme, "")
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert all(target.startswith(("https://", "#")) for target in targets)
    texts = re.findall(r"(?<!!)\[([^]!]+)\]\(docs/[^)]*\)", readme)
    assert texts
    assert all(said in text for said in texts)


# `verax` on PyPI belongs to somebody else, and `verax-scores` to nobody until it is registered.
OTHER_PROJECT = re.compile(
    r"""\bverax\[[a-z]|\b(?:pip|pipx|uv|conda)\b[^`\n|;&]*\b(?:install|add)\b[^`\n|;&]*["'\s]verax(?![-\w./])"""
    + ("" if _addresses.REGISTERED else r"""|\b(?:install|add) ["']?verax-scores""")
)


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("pip install verax", True),
        ("pip install 'verax[torch]'", True),
        ("uv add verax", True),
        ("python -m pip install --quiet verax", True),
        ("pip install 'verax-scores[torch]' && verax demo", not _addresses.REGISTERED),
        ("pip install '.[all]'", False),
    ],
)
def test_the_other_project_is_recognised(text, wrong):
    assert bool(OTHER_PROJECT.search(text)) == wrong


def test_nothing_tells_users_to_install_the_other_project():
    folders = ("src", "docs", "man", "benchmarks", "studies", ".github")
    beside = (
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Makefile",
        "Dockerfile",
        "action.yml",
        "pyproject.toml",
    )
    endings = {".py", ".pyi", ".md", ".rst", ".yml", ".ipynb", ".html", ".js", ".1"}
    paths = [
        p
        for f in folders
        for p in (ROOT / f).rglob("*")
        if p.suffix in endings and "generated" not in p.parts
    ]
    found = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in [*paths, *(ROOT / name for name in beside)]
        for line in path.read_text(encoding="utf-8").splitlines()
        if OTHER_PROJECT.search(line)
    ]
    assert found == []


def test_the_overview_is_one_page():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert len(page.split()) <= 1000
    named = set(re.findall(r"\b([a-z_]+)/", page))
    assert named >= {path.name for path in (ROOT / "src/verax").iterdir() if (path / "__init__.py").exists()}
