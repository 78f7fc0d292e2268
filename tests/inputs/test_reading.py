"""`vx.Reading`: one name, type and help for every option of reading, in Python, in commands and in TOML."""

import inspect
from dataclasses import fields, replace

import pytest

import verax as vx
from verax.inputs.reading import OPTIONS, Keywords

TEXT = "grade;p_mild;p_severe;who\nmild;0.8;0.2;a\nsevere;0.4;0.6;b\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "preds.csv"
    path.write_text(TEXT)
    return path


def test_keywords_fields_and_options_are_the_same_names():
    names = [each.name for each in fields(vx.Reading)]
    assert names == list(OPTIONS)
    assert set(names) == set(Keywords.__annotations__)
    shown = inspect.signature(vx.scan).parameters
    assert list(shown) == ["source", "reading", "record", "progress", *names]


def test_a_reading_is_what_its_keywords_are(file):
    said = {"target": "grade", "probs": ["p_mild", "p_severe"], "delimiter": ";", "id": "who"}
    by_keywords, by_reading = vx.scan(file, **said), vx.scan(file, vx.Reading(**said))
    assert vx.evaluate(by_keywords).to_dict() == vx.evaluate(by_reading).to_dict()
    assert by_keywords.taken == by_reading.taken


def test_keywords_override_a_reading(file):
    reading = vx.Reading(target="nothing", delimiter=";", normalize=True)
    handle = vx.scan(file, reading, target="grade", normalize=False)
    assert vx.evaluate(handle)["brier"] == pytest.approx(0.2)
    with pytest.raises(vx.InputError, match="nothing"):
        vx.scan(file, reading)


def test_values_are_those_that_were_meant():
    reading = vx.Reading(probs={"a": "a_*", "b": ["x", "y"]}, id=["case", "visit"], groups="doc", by="site")
    assert reading.probs == {"a": ("a_*",), "b": ("x", "y")}
    assert (reading.id, reading.groups, reading.by) == (("case", "visit"), "doc", ("site",))
    assert repr(vx.Reading(target="y")) == "Reading(target='y')"
    assert replace(reading, by=()) == replace(reading, by=None)


@pytest.mark.parametrize(
    ("said", "argument"),
    [
        ({"target": 5}, "target"),
        ({"logits": 1}, "logits"),
        ({"groups": ["a", "b", "c"]}, "groups"),
        ({"outputs": "nothing"}, "outputs"),
        ({"raters": "r_*", "target": "y"}, "raters"),
        ({"position": 1, "after": "x"}, "after"),
        ({"sets": "s", "probs": "p"}, "probs"),
        ({"grades": "g", "probs": "p"}, "probs"),
        ({"classes": 1}, "classes"),
        ({"lists": {"shap": "x"}}, "lists"),
    ],
)
def test_what_cannot_be_is_refused_by_name(file, said, argument):
    with pytest.raises(vx.InputError) as error:
        vx.scan(file, **said)
    assert error.value.argument == argument


def test_unknown_keywords_name_the_nearest(file):
    with pytest.raises(TypeError, match="Did you mean 'target'"):
        vx.scan(file, traget="grade")
    with pytest.raises(vx.InputError, match="must be a Reading"):
        vx.scan(file, "grade")


def test_toml_comes_back(tmp_path):
    reading = vx.Reading(
        target='the "outcome"',
        probs={"model a": ["x", "y"], "b": "z_*"},
        classes=["no", "yes"],
        invalid="skip",
        grade_range=(0, 5),
        delimiter="\t",
        by=["age:4", "site"],
    )
    path = tmp_path / "verax.toml"
    path.write_text(f'files = ["preds.csv"]\n{reading.to_toml()}')
    assert vx.Reading.from_toml(path) == reading
    project = tmp_path / "pyproject.toml"
    project.write_text(f'[project]\nname = "x"\n[tool.verax]\n{reading.to_toml()}')
    assert vx.Reading.from_toml(project) == reading


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('traget = "y"', ["'traget'", "verax.toml", "Write target."]),
        ("target = 5", ["'target'", "verax.toml", "must be a text", 'Write target = "COLUMN".']),
        ('logits = "yes"', ["'logits'", "must be True or False", "Write logits = true."]),
        ('samples = "some"', ["'samples'", "'first', 'pool', 'repeats'"]),
        ("target = ", ["must be TOML"]),
    ],
)
def test_a_file_that_says_something_wrong_is_refused(tmp_path, text, parts):
    path = tmp_path / "verax.toml"
    path.write_text(text)
    with pytest.raises(vx.InputError) as error:
        vx.Reading.from_toml(path)
    assert all(part in str(error.value) for part in parts), str(error.value)
