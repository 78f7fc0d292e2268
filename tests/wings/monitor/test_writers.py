"""Several writers of one state: on a disk they wait for each other, in a store they read it again."""

import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow.fs as pafs
import pytest

import verax as vx
from servers import store
from verax._settings import changed
from verax.common.locking import claimed
from verax.common.remote import path_of


def rows(path, first, n=30):
    y = np.arange(n) % 2
    lines = [f"{first + i},1,{y[i]},{0.4 if y[i] else 0.6},{0.6 if y[i] else 0.4}" for i in range(n)]
    path.write_text("\n".join(["id,day,label,p_0,p_1", *lines]) + "\n")


@pytest.fixture(scope="module")
def s3():
    pytest.importorskip("moto.server")
    with store("box") as address:
        yield address


def names(folder):
    system, _ = pafs.FileSystem.from_uri("s3://box")
    found = system.get_file_info(pafs.FileSelector(folder, recursive=True))
    return sorted(info.path for info in found if info.type == pafs.FileType.File)


@pytest.mark.parametrize("where", ["disk", "store"])
def test_processes_that_write_one_state_lose_nothing(where, tmp_path, s3):
    state = tmp_path / "m.state" if where == "disk" else "s3://box/many/m.state"
    for i in range(4):
        # Of one day, so that the order of the files does not matter.
        rows(tmp_path / f"{i}.csv", 1000 * i)
    typed = ["--time", "day", "--id", "id", "--unit", "row", "--state", str(state), "--json"]
    runs = [
        subprocess.Popen(
            [sys.executable, "-m", "verax", "monitor", str(tmp_path / f"{i}.csv"), *typed],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for i in range(4)
    ]
    ended = [(*run.communicate(timeout=240), run.returncode) for run in runs]
    assert all(code in (0, 1) for _, _, code in ended), ended
    assert vx.Monitor.load(state).n_rows == 120
    if where == "store":
        # No claim is left.
        assert names("box/many") == ["box/many/m.state"]


def test_two_that_begin_a_state_at_once(tmp_path, s3):
    """The second must not replace what the first has just made."""
    from verax.wings.monitor.monitor import save_locked

    state = path_of("s3://box/new/m.state")
    one, other = vx.Monitor(0.4), vx.Monitor(0.4)
    save_locked(one, state)
    with pytest.raises(vx.InputError, match="must not have changed"):
        save_locked(other, state)


def test_a_state_that_was_changed_is_not_replaced(s3):
    """What is read again and again by the command is refused by name in the end."""
    state = "s3://box/busy/m.state"
    vx.Monitor().save(state)
    late, other = vx.Monitor.load(state), vx.Monitor.load(state)
    other.note_file("1", "b.csv")
    other.save(state)
    with pytest.raises(vx.InputError, match=r"busy/m\.state must not have changed since"):
        late.save(state)
    assert vx.Monitor.load(state).knows_file("1")


def test_claims_exclude_each_other(s3):
    place = path_of("s3://box/claimed/x.state")
    inside, most = [], []

    def work():
        for _ in range(3):
            with claimed(place):
                inside.append(1)
                most.append(len(inside))
                time.sleep(0.01)
                inside.pop()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(most) == 12
    assert max(most) == 1
    assert names("box/claimed") == []


def test_a_claim_of_a_process_that_was_killed(s3):
    place = path_of("s3://box/dead/x.state")
    system, _ = pafs.FileSystem.from_uri("s3://box")
    with system.open_output_stream("box/dead/.x.state.claims/dead") as out:
        out.write(b"process 7 on host, since yesterday")
    refused = pytest.raises(vx.InputError, match="a claim of process 7 on host")
    with changed(lock_wait=0.3), refused as caught, claimed(place):
        pass
    assert "Run again later: a claim counts for 300 seconds" in str(caught.value)
    time.sleep(1.1)
    with changed(claim_left=0.5), claimed(place):
        assert len(names("box/dead")) == 1
    assert names("box/dead") == []
