"""What each method loses in each experiment, kept in a file, so that methods can be rerun one by one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

import verax as vx
from boards.experiments import Experiment, Rows
from boards.methods import NOTHING, Method

RULES = ("log_score", "brier", "rps")
# The smallest probability that the log score is taken of, for every method: some rule classes out.
FLOOR = 1e-6


@dataclass(frozen=True)
class Outcome:
    """What a method loses in an experiment, on average over its splits.

    Attributes
    ----------
    losses : dict
        The mean loss of each rule on rows that no fit has seen.
    seconds : float
        CPU seconds of fitting and applying it, on average over the splits.
    failure : str
        Why it failed; its losses are then those of doing nothing.
    """

    data: str
    experiment: str
    n_classes: int
    ordered: bool
    rows: int
    method: str
    losses: dict[str, float]
    seconds: float
    failure: str = ""


def measure(experiment: Experiment, method: Method) -> Outcome:
    """Fit a method in all splits of an experiment, and score what it makes of the rows that judge."""
    found, seconds, failure = [], [], ""
    for rows in experiment.splits:
        began = time.process_time()
        try:
            q = method(rows, ordered=experiment.ordered)
        except Exception as error:
            q, failure = rows.test_p, f"{type(error).__name__}: {str(error)[:200]}"
        seconds.append(time.process_time() - began)
        found.append(losses(rows, q))
    return Outcome(
        experiment.data,
        experiment.name,
        experiment.n_classes,
        experiment.ordered,
        len(experiment.splits[0].y),
        method.name,
        {rule: float(np.mean([each[rule] for each in found])) for rule in RULES},
        float(np.mean(seconds)),
        failure,
    )


def losses(rows: Rows, q: np.ndarray) -> dict[str, float]:
    """The mean losses of recalibrated rows."""
    floored = np.maximum(q, FLOOR)
    floored /= floored.sum(axis=1, keepdims=True)
    return {rule: float(vx.parse(rule)(rows.test_y, floored if rule == "log_score" else q)) for rule in RULES}


class Ledger:
    """All outcomes so far, in a file with a line for each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.outcomes: dict[tuple[str, str], Outcome] = {}
        if path.exists():
            for line in path.read_text().splitlines():
                self._keep(Outcome(**json.loads(line)))

    def forget(self, text: str) -> None:
        """Drop the outcomes of methods whose names contain a text."""
        self.outcomes = {key: o for key, o in self.outcomes.items() if text not in o.method}
        self.path.write_text("".join(json.dumps(asdict(o)) + "\n" for o in self.outcomes.values()))

    def complete(self, experiments: Iterable[Experiment], methods: list[Method]) -> None:
        """Measure whatever has not been measured."""
        with self.path.open("a") as file:
            for experiment in experiments:
                for method in methods:
                    if (experiment.name, method.name) in self.outcomes:
                        continue
                    if method.fits(experiment.n_classes, ordered=experiment.ordered):
                        found = measure(experiment, method)
                        file.write(json.dumps(asdict(found)) + "\n")
                        file.flush()
                        self._keep(found)

    def _keep(self, outcome: Outcome) -> None:
        self.outcomes[outcome.experiment, outcome.method] = outcome

    @property
    def failures(self) -> dict[str, list[str]]:
        """The experiments in which each method failed."""
        found: dict[str, list[str]] = {}
        for o in self.outcomes.values():
            if o.failure and o.method != NOTHING:
                found.setdefault(o.method, []).append(f"{o.experiment}: {o.failure}")
        return found
