"""`verax.toml` says once how files are read; what is typed overrides it."""

import json
import shlex

import pytest

from commandline import verax

ROWS = "".join(
    f"{'mild' if i % 3 else 'severe'};0.{7 - i % 4};0.{3 + i % 4};{'ab'[i % 2]};{i}\n" for i in range(60)
)
TEXT = f"grade;p_mild;p_severe;site;case\n{ROWS}"
CONFIG = 'target = "grade"\nprobs = "p_*"\ndelimiter = ";"\nid = "case"\nby = "site"\n'
TYPED = ("--target", "grade", "--probs", "p_*", "--delimiter", ";", "--id", "case")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "preds.csv").write_text(TEXT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(*arguments):
    ran = verax(*arguments, "--json")
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize(
    "command", ["evaluate", "worst", "decompose", "retain", "decide", "recalibrate"], ids=str
)
def test_what_the_file_says_is_what_was_typed(folder, command):
    own = ("--by", "site") if command == "evaluate" else ()
    typed = printed(command, "preds.csv", *TYPED, *own)
    (folder / "verax.toml").write_text(CONFIG)
    found = printed(command, "preds.csv")
    assert found.pop("config") == "verax.toml"
    assert found == typed


def test_files_need_not_be_typed(folder):
    (folder / "verax.toml").write_text(f'files = ["preds.csv"]\n{CONFIG}')
    assert printed("evaluate") == printed("evaluate", "preds.csv")
    (folder / "below").mkdir()


@pytest.fixture
def below(folder, monkeypatch):
    """A folder two levels below one that has a configuration."""
    (folder / "verax.toml").write_text(f'files = "preds.csv"\n{CONFIG}')
    below = folder / "runs" / "today"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    return below


@pytest.mark.parametrize("mark", ["folder", "file"])
def test_the_nearest_file_up_to_the_root_of_the_repository_is_used_and_named(folder, below, mark):
    # A worktree has a file of this name.
    (folder / ".git").mkdir() if mark == "folder" else (folder / ".git").write_text("gitdir: elsewhere")
    ran = verax("worst", "-n", "2")
    assert ran.returncode == 0, ran.stderr
    assert "Options of reading are from ../../verax.toml." in ran.stdout
    assert printed("worst")["config"] == "../../verax.toml"
    # A nearer one counts, of whatever kind.
    project = below.parent / "pyproject.toml"
    project.write_text("[tool.other]\nx = 1\n")
    assert printed("worst")["config"] == "../../verax.toml"
    project.write_text(f'[tool.verax]\nfiles = "../preds.csv"\n{CONFIG}')
    assert printed("worst")["config"] == "../pyproject.toml"


def test_no_file_is_searched_above_the_root_of_the_repository(folder, below):
    (below.parent / ".git").mkdir()
    ran = verax("worst")
    assert ran.returncode == 2
    assert "FILE" in ran.stderr
    assert "config" not in printed("worst", "../../preds.csv", *TYPED)


def test_without_a_repository_only_the_current_folder_is_searched(folder, below, monkeypatch):
    assert not any((place / ".git").exists() for place in below.parents)
    assert "config" not in printed("worst", "../../preds.csv", *TYPED)
    monkeypatch.chdir(folder)
    assert printed("worst")["config"] == "verax.toml"


def test_none_reads_no_file(folder):
    (folder / "verax.toml").write_text(CONFIG)
    ran = verax("evaluate", "preds.csv", "--config", "none")
    assert ran.returncode == 2
    assert "config" not in printed("worst", "preds.csv", "--config", "none", *TYPED)


def test_what_is_typed_overrides(folder):
    (folder / "verax.toml").write_text(CONFIG.replace('"grade"', '"nothing"'))
    assert "There is no" in verax("evaluate", "preds.csv").stderr
    assert printed("worst", "preds.csv", "--target", "grade")["taken"]["target"] == "grade"
    # Raters are in place of a target.
    ran = verax("raters", "preds.csv", "--raters", "grade,site")
    assert "beside the column of outcomes" not in ran.stderr


def test_another_file_may_be_named(folder):
    (folder / "verax.toml").write_text("traget = 1")
    (folder / "mine.toml").write_text(CONFIG)
    assert printed("worst", "preds.csv", "--config", "mine.toml")["config"] == "mine.toml"
    ran = verax("worst", "preds.csv")
    assert ran.returncode == 2
    assert "'traget'" in ran.stderr
    assert "Write target." in ran.stderr


def test_the_next_step_runs_as_printed(folder):
    (folder / "verax.toml").write_text(f'files = "preds.csv"\n{CONFIG}')
    step = printed("evaluate")["next_step"]
    if step is not None:
        ran = verax(*shlex.split(step["command"])[1:])
        assert ran.returncode == 0, ran.stderr


def test_a_missing_file_is_refused(folder):
    (folder / "verax.toml").write_text(CONFIG)
    ran = verax("evaluate")
    assert ran.returncode == 2
    assert "FILE" in ran.stderr
    assert "verax.toml" in ran.stderr


def test_grades_in_a_file_lead_to_evals_unless_probabilities_are_typed(folder):
    (folder / "verax.toml").write_text('grades = "site"\ndelimiter = ";"\n')
    ran = verax("evaluate", "preds.csv")
    assert "type `verax evals evaluate` in place of `verax evaluate`" in ran.stderr
    assert (
        printed("evaluate", "preds.csv", "--target", "grade", "--probs", "p_*")["taken"]["target"] == "grade"
    )
