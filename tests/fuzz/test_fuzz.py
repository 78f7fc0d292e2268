"""The bounded, seeded runs of every fuzzer and attack; `make fuzz` runs them for long."""

from __future__ import annotations

import pytest

from fuzz import run

# In parts, so that workers can share them; most calls are for the long tests.
PARTS = [
    pytest.param(
        name, range(start * calls // 4, stop * calls // 4), marks=[pytest.mark.long] if start else []
    )
    for name, calls in run.FUZZERS.items()
    for start, stop in ((0, 1), (1, 6), (6, 12))
]


@pytest.mark.parametrize(("name", "calls"), PARTS, ids=str)
def test_no_hostile_call_gets_through(name, calls):
    if name.startswith("attack."):
        # Its calls are those of all public names, and the seeds are of all of them.
        pytest.importorskip("lightgbm")
    count, messages = run.failures(name, calls, seed=11)
    assert count == 0, "\n".join(messages)
