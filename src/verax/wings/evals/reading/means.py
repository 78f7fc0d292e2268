"""Files of means, which have no answers: they are recognised, to say what to read in their place."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from verax.errors import Remedy
from verax.wings.evals.reading.graded import LogFormat, LogRecords
from verax.wings.evals.reading.look import Look, no_log

# The fields by which means are known, and the file of the same tool that has the answers.
_KNOWN = {
    "simple-evals": (("score", "score:std"), "Grade the answers in its sampler, and write a row for each."),
    "Ragas": (("metric", "score"), "Write the rows: result.to_pandas().to_csv('answers.csv')."),
    "Braintrust": (
        ("experiment_name", "scores"),
        "Write the results: a line of JSON for each result.as_dict() of Eval(...).results.",
    ),
    "lm-evaluation-harness": (
        ("results", "n-shot", "config"),
        "Pass --log_samples to lm_eval, and read the files samples_*.jsonl.",
    ),
}


def _tool_of(look: Look) -> str | None:
    """The tool whose means a file holds."""
    for tool, (names, _) in _KNOWN.items():
        record = {_plain(name) for name in look.record}
        if set(names) <= record and (tool != "Ragas" or len(record) == len(names)):
            return tool
        if tool != "Ragas" and not look.record and set(names) <= {_plain(name) for name in look.keys}:
            return tool
    return None


def _plain(name: str) -> str:
    return {"experimentName": "experiment_name"}.get(name, name)


def _open(path: Path) -> LogRecords:
    tool = _tool_of(Look(path))
    found = f"it holds means of {tool}, no answers"
    raise no_log(path, found, Remedy(_KNOWN[str(tool)][1]))


def _no_answer(record: Any) -> NoReturn:
    raise TypeError(f"a file of means has no answers such as {record!r}")


MEANS = LogFormat(
    "means",
    "means without answers",
    lambda look: _tool_of(look) is not None,
    _open,
    _no_answer,
    _no_answer,
)
