"""Where the time of a run goes, printed at its end; which tests begin first, and which are left out."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter

import pytest

# A run of fewer tests is one that somebody looks at anyway.
_FEW = 200
_SHOWN = 20
# Where costs are kept between runs, and from which on.
_KEPT, _KEPT_FROM = "verax/costs", 0.02
# Seconds of a test whose cost is not known, or that waits for others, by its mark.
_GUESSED = {"slow": 5.0, "browser": 3.0, "frameworks": 1.0}


def spent():
    """Processor seconds of this process and of those it has waited for."""
    taken = os.times()
    return taken.user + taken.system + taken.children_user + taken.children_system


class _Compilations:
    """Kernels that this process compiles, and how long that takes."""

    def __init__(self):
        self.count, self.seconds = 0, 0.0
        self._depth, self._start, self._listening = 0, 0.0, False

    def listen(self):
        """Begin to count, once numba is there."""
        if self._listening or "numba.core.event" not in sys.modules:
            return
        from numba.core import event

        # A kernel may compile others on the way.
        def begin(_self, _event):
            self._depth += 1
            if self._depth == 1:
                self._start = time.thread_time()

        def end(_self, _event):
            self._depth -= 1
            if self._depth == 0:
                self.count += 1
                self.seconds += time.thread_time() - self._start

        event.register(
            "numba:compile", type("Counting", (event.Listener,), {"on_start": begin, "on_end": end})()
        )
        self._listening = True


_START = time.time()
_LATE = "the time is over"
_compilations = _Compilations()
_began = {}
_tests = {}


def pytest_addoption(parser):
    """Let a run leave out what earlier runs found to be dear, and end in time."""
    parser.addoption(
        "--cheap",
        type=float,
        metavar="SECONDS",
        help="leave out tests that took longer in an earlier run; of new files take one case of each",
    )
    parser.addoption("--within", type=float, metavar="SECONDS", help="begin no test later than that")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Tell each worker what is known, so that all have the same order and the same clock."""
    node.workerinput["costs"] = _costs(node.config)
    node.workerinput["start"] = _START


def _costs(config):
    """Processor seconds of tests in earlier runs."""
    if hasattr(config, "workerinput"):
        return config.workerinput["costs"]
    kept = getattr(config, "cache", None)
    return kept.get(_KEPT, {}) if kept is not None else {}


def pytest_collection_modifyitems(config, items):
    """Leave out what takes longer than asked for, and bring the rest into order."""
    most, costs = config.getoption("--cheap"), _costs(config)
    if most is not None:
        kept = _cheap(items, costs, most)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept
    if hasattr(config, "workerinput"):
        _dear_first(items, costs)


def _cheap(items, costs, most):
    """Tests that are known to be cheap, and one case of each of which nothing is known, in order."""
    known, seen, kept = {name.partition("::")[0] for name in costs}, set(), {}
    for item in items:
        test = item.nodeid.partition("[")[0]
        if costs.get(item.nodeid, 0.0) <= most and (test not in seen or _file(item) in known):
            kept[item] = None
        seen.add(test)
    return kept


def _dear_first(items, costs):
    """Begin with the files of the dearest tests: one that begins last keeps a core idle."""
    dearest = Counter()
    for item in items:
        guess = max((_GUESSED.get(mark.name, 0.0) for mark in item.iter_markers()), default=0.0)
        file = _file(item)
        dearest[file] = max(dearest[file], guess, costs.get(item.nodeid, 0.0))
    items.sort(key=lambda item: (-dearest[_file(item)], _file(item)))


def _file(item):
    return item.nodeid.partition("::")[0]


def _keep(config):
    """Keep the costs of a run for later ones."""
    kept = getattr(config, "cache", None)
    if kept is not None:
        costs = kept.get(_KEPT, {}) | {name: cost[0] - cost[2] for name, cost in _tests.items()}
        kept.set(_KEPT, {name: round(cost, 2) for name, cost in costs.items() if cost >= _KEPT_FROM})


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Note when a test begins, unless that is too late."""
    _compilations.listen()
    _began[item.nodeid] = (spent(), _compilations.count, _compilations.seconds)
    within = item.config.getoption("--within")
    start = getattr(item.config, "workerinput", {}).get("start", _START)
    if within is not None and time.time() - start > within:
        pytest.skip(_LATE)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item, call):
    """Note with each test what it cost, fixtures included."""
    if call.when == "teardown":
        now = (spent(), _compilations.count, _compilations.seconds)
        cost = [after - before for after, before in zip(now, _began.pop(item.nodeid), strict=True)]
        item.user_properties.append(("cost", cost))


def pytest_runtest_logreport(report):
    """Collect the costs, which workers send along."""
    if report.when == "teardown":
        _tests[report.nodeid] = dict(report.user_properties)["cost"]


def pytest_terminal_summary(terminalreporter, config):
    """Print them where many tests ran, and keep them."""
    _keep(config)
    late = sum(_LATE in str(report.longrepr) for report in terminalreporter.stats.get("skipped", ()))
    if late:
        terminalreporter.write_line(
            f"{late} tests were left out: {config.getoption('--within'):g} s were over."
        )
    if len(_tests) < _FEW:
        return
    show = terminalreporter.write_line
    terminalreporter.section("processor time")
    folders, counts, whole = Counter(), Counter(), [0, 0, 0]
    for name, cost in _tests.items():
        folder = name.partition("::")[0].rpartition("/")[0]
        folders[folder] += cost[0]
        counts[folder] += 1
        whole = [sum(pair) for pair in zip(whole, cost, strict=True)]
    show(f"{whole[0]:8.1f} s  {len(_tests)} tests; {whole[1]} kernels were compiled, in {whole[2]:.0f} s")
    for folder, seconds in folders.most_common():
        show(f"{seconds:8.1f} s  {folder} ({counts[folder]})")
    terminalreporter.section(f"the {_SHOWN} slowest tests")
    for name, cost in sorted(_tests.items(), key=lambda pair: -pair[1][0])[:_SHOWN]:
        show(f"{cost[0]:8.1f} s  {name}")
