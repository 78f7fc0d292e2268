"""Evaluation logs of language models, as tables of graded answers."""

from verax.wings.evals.reading.table import COLUMNS, EvalLog, read_log

__all__ = ["COLUMNS", "EvalLog", "read_log"]
