"""The text of the question that a record answers, for readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from verax.inputs.records.record import mapping, sequence

# Fields that hold the question, in the order in which they are looked for.
_FIELDS = ("question", "problem", "query", "prompt", "input", "text", "goal", "ctx", "sentence")
# Fields that hold what was asked, in which these are looked for again.
_WITHIN = ("doc", "instance", "state", "request", "body")
# Texts are cut to this many characters; of prompts with examples the end is the question.
_LONGEST = 200


def question_text(record: Any) -> str | None:
    """The question of a record on one line, shortened; None where it holds none.

    >>> question_text({"doc": {"question": "How much is 2 + 2?"}, "resps": [["4"]]})
    'How much is 2 + 2?'
    >>> question_text({"input": [{"role": "user", "content": "Which planet?"}]})
    'Which planet?'
    """
    found = _text_in(mapping(record))
    if found is None:
        return None
    line = " ".join(found.split())
    return line if len(line) <= _LONGEST else "..." + line[3 - _LONGEST :]


def _text_in(fields: Mapping[Any, Any]) -> str | None:
    for name in _FIELDS:
        text = _said(fields.get(name))
        if text:
            return text
    for name in _WITHIN:
        inner = mapping(fields.get(name))
        text = _text_in(inner) if inner else None
        if text:
            return text
    messages = _said(fields.get("messages"))
    return messages or _said(mapping(mapping(fields.get("arguments")).get("gen_args_0")).get("arg_0"))


def _said(value: Any) -> str | None:
    """A text, that of an object, or what the last user message of a conversation says."""
    if isinstance(value, str):
        return value.strip() or None
    if isinstance(value, Mapping):
        return _said(value.get("text"))
    messages = [mapping(each) for each in sequence(value)]
    asked = [message for message in messages if message.get("role") == "user"]
    if not asked:
        return None
    content = asked[-1].get("content")
    if isinstance(content, str):
        return _said(content)
    parts = [mapping(part).get("text") for part in sequence(content)]
    return _said(" ".join(part for part in parts if isinstance(part, str)))
