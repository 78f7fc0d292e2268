"""JSON is read in two ways, by msgspec and with care, which give the same values."""

import json

import pytest

from verax.common import strictjson

TEXTS = [
    '{"a": [1, 2.5, -0.0, 1e5, true, null], "b": {"c": "x: y"}}',
    '{"a" :1, "b":{"a": 2}}',
    '{"a\\u003ab": 1}',
    "123456789012345678901234567890",
    "[1e400, -1e400]",
    '"\\ud800"',
    '["\\ud83d\\ude00", "é", "\\/"]',
    " [0.1234567890123456789012345678901234567890] ",
    "NaN",
]


def both(text):
    """The value of a text and of its bytes, of which msgspec reads only bytes."""
    return strictjson.parse(text), strictjson.parse(text.encode())


@pytest.mark.parametrize("text", TEXTS)
def test_values_are_those_of_json(text):
    careful, quick = both(text)
    assert repr(careful) == repr(quick) == repr(json.loads(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', "'a' occurs twice"),
        ('{"a": {"b": 1, "c": 2, "b": 3}}', "'b' occurs twice"),
        # The escaped colon makes up for the one that is lost.
        ('{"a": 1, "a": "\\u003a"}', "'a' occurs twice"),
        ('{"a" : 1, "a": 2}', "'a' occurs twice"),
        ("[" * 5000 + "]" * 5000, "nested too deeply"),
        ("1" * 5000, "too many digits"),
        ("[1, 2", "at column"),
        ('{"a": 01}', "at column"),
    ],
)
def test_what_is_doubtful_is_refused_either_way(text, said):
    for given in (text, text.encode()):
        with pytest.raises(strictjson.JsonError, match=said):
            strictjson.parse(given)


def test_the_last_of_two_keys_counts_where_that_is_asked_for():
    for given in ('{"a": 1, "a": 2}', b'{"a": 1, "a": 2}'):
        assert strictjson.parse(given, once=False) == {"a": 2}


@pytest.mark.parametrize("text", [b'{"a": {"b": 1}, "c": [2], "d": 3}', b'{"a": NaN, "c": [2]}', b"[1]"])
def test_some_fields(text):
    value = json.loads(text)
    wanted = {"c": value["c"]} if isinstance(value, dict) else value
    assert strictjson.parse_fields(text, ("c", "e")) == wanted


@pytest.mark.parametrize("text", [b'{"a": 1, "c": 2, "c": 3}', b'{"c": {"x": 1, "x": 2}}', b'{"c": [}'])
def test_fields_that_are_doubtful(text):
    with pytest.raises(strictjson.JsonError):
        strictjson.parse_fields(text, ("c",))
