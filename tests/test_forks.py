"""Processes that are forked while threads work with verax: the child must not wait for locks of theirs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import verax

SOURCES = sorted(Path(verax.__file__).parent.rglob("*.py"))

CARD = """
import dataclasses, os, signal, threading
import numpy as np
import verax as vx

rng = np.random.default_rng(0)
card = vx.evaluate(rng.integers(0, 3, 50), rng.dirichlet(np.ones(3), 50))
inside, go_on = threading.Event(), threading.Event()

class Slow:
    def __getattr__(self, name):
        inside.set()
        go_on.wait()
        raise SystemExit

slow = dataclasses.replace(card, tally=Slow())
threading.Thread(target=lambda: slow.scores, daemon=True).start()
inside.wait()
"""

COMPILER = """
import os, signal, threading, time
import numba
from numba.core.compiler_lock import global_compiler_lock
from verax.kernels import arithmetic

held = threading.Event()

def compile_something():
    with global_compiler_lock:
        held.set()
        time.sleep(0.5)

threading.Thread(target=compile_something, daemon=True).start()
held.wait()
"""

FORK = """
child = os.fork()
if child == 0:
    signal.alarm(20)
    {work}
    os._exit(0)
print(os.waitpid(child, 0)[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize(
    ("busy", "work"), [(CARD, "card.scores"), (COMPILER, "numba.njit(lambda x: x + 1)(1)")]
)
def test_a_child_forked_while_threads_work_does_not_wait_for_them(busy, work):
    if busy is COMPILER:
        pytest.importorskip("numba")
    script = busy + FORK.format(work=work)
    run = subprocess.run([sys.executable, "-W", "ignore", "-c", script], capture_output=True, text=True)
    assert run.stdout == "0\n", run.stderr


def test_cached_properties_have_no_lock():
    taken = re.compile(
        r"(?<!`)functools\.cached_property|from functools import (\([^)]*|.*)\bcached_property\b"
    )
    assert taken.search("from functools import (\n    cache,\n    cached_property,\n)")
    for path in SOURCES:
        assert not taken.search(path.read_text()), path
