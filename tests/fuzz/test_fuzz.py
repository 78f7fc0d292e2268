"""The bounded, seeded runs of every fuzzer; `make fuzz` runs them for long."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("fuzz_run", Path(__file__).with_name("run.py"))
run = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(run)


@pytest.mark.parametrize("name", run.FUZZERS)
def test_no_hostile_call_gets_through(name):
    count, messages = run.failures(name, run.FUZZERS[name], seed=11)
    assert count == 0, "\n".join(messages)
