"""Where the time of a run goes: processor seconds per folder and of the slowest tests, at the end of it."""

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


_compilations = _Compilations()
_began = {}
_tests = {}


def pytest_addoption(parser):
    """Let a run leave out what earlier runs found to be dear."""
    parser.addoption(
        "--cheap",
        type=float,
        metavar="SECONDS",
        help="leave out tests that took longer in an earlier run, without the compiling of kernels",
    )


def pytest_collection_modifyitems(config, items):
    """Leave out what is known to take longer than asked for."""
    most, kept = config.getoption("--cheap"), getattr(config, "cache", None)
    if most is None or kept is None:
        return
    costs = kept.get(_KEPT, {})
    dear = [item for item in items if costs.get(item.nodeid, 0.0) > most]
    config.hook.pytest_deselected(items=dear)
    items[:] = [item for item in items if costs.get(item.nodeid, 0.0) <= most]


def _keep(config):
    """Keep the costs of a run for later ones."""
    kept = getattr(config, "cache", None)
    if kept is not None:
        costs = kept.get(_KEPT, {}) | {name: cost[0] - cost[2] for name, cost in _tests.items()}
        kept.set(_KEPT, {name: round(cost, 2) for name, cost in costs.items() if cost >= _KEPT_FROM})


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Note when a test begins."""
    _compilations.listen()
    _began[item.nodeid] = (spent(), _compilations.count, _compilations.seconds)


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
