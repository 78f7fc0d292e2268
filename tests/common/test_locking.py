"""Locks of files: one holder at a time, named to those who wait, and gone when it ends."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading

import pytest

import verax as vx
from verax.common.locking import locked

HOLD = """
import sys, time
from pathlib import Path
from verax.common.locking import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of a file."""
    running = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "model.state")], stdout=subprocess.PIPE, text=True
    )
    assert running.stdout.readline() == "held\n"
    yield running
    running.kill()
    running.wait()
    running.stdout.close()


def test_who_waits_in_vain_is_told_who_holds_the_lock(tmp_path, holder, change):
    change(lock_wait=0.1)
    with (
        pytest.raises(vx.InputError, match=f"process {holder.pid} on .*, since 20.* 0.1 seconds have passed"),
        locked(tmp_path / "model.state"),
    ):
        raise AssertionError
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "model.state")
    with pytest.raises(vx.InputError, match="in use by another process"), locked(link):
        raise AssertionError


def test_the_lock_of_a_killed_holder_is_free(tmp_path, holder):
    holder.kill()
    holder.wait()
    assert (tmp_path / "model.state.lock").exists()
    with locked(tmp_path / "model.state"):
        assert f"process {os.getpid()} on" in (tmp_path / "model.state.lock").read_text()
    assert not list(tmp_path.iterdir())


def test_threads_hold_it_one_at_a_time(tmp_path):
    path, inside, most = tmp_path / "n", [], []

    def work():
        for _ in range(10):
            with locked(path):
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 40


def test_folders_that_cannot_lock_are_refused(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")

    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with (
        pytest.raises(vx.InputError, match="must be in a folder that can lock files"),
        locked(tmp_path / "model.state"),
    ):
        raise AssertionError
    assert os.listdir(tmp_path) in ([], ["model.state.lock"])


def test_what_is_no_regular_file_has_no_lock(tmp_path):
    with locked(tmp_path / "none" / "model.state"), locked(tmp_path):
        assert not list(tmp_path.iterdir())
