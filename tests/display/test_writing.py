"""Files are replaced whole or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading

import pytest

import verax as vx
from verax.display.writing import make_folder, written


def test_an_interrupted_writer_leaves_the_old_file(tmp_path):
    target = tmp_path / "report.html"
    target.write_text("old")

    def interrupted():
        with written(target) as new:
            assert new.suffix == ".html"
            new.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_new_file_may_be_read_like_any_other(tmp_path):
    plain, target = tmp_path / "plain", tmp_path / "new.txt"
    plain.write_text("")
    with written(target) as new:
        new.write_text("text")
    assert target.stat().st_mode == plain.stat().st_mode
    target.chmod(0o600)
    with written(target) as new:
        new.write_text("more")
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("more", 0o600)


def test_where_nothing_can_be_written(tmp_path):
    for path, complaint in ((tmp_path, "is a folder"), (tmp_path / "no" / "x.html", "There is no folder")):
        with pytest.raises(vx.InputError, match=complaint), written(path):
            pass


def test_a_link_stays_and_its_file_is_replaced(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to("real.txt")
    with written(link) as new:
        new.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    dangling = tmp_path / "dangling.txt"
    dangling.symlink_to("later.txt")
    with written(dangling) as new:
        new.write_text("made")
    assert dangling.is_symlink()
    assert (tmp_path / "later.txt").read_text() == "made"
    assert sorted(os.listdir(tmp_path)) == ["dangling.txt", "later.txt", "link.txt", "real.txt"]


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe.html"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    with written(pipe) as new:
        assert new.suffix == ".html"
        new.write_text("through")
    reader.join(timeout=300)
    assert got == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert os.listdir(tmp_path) == ["pipe.html"]


def test_devices_stay_devices():
    with written("/dev/null") as new:
        new.write_text("nothing")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    with pytest.raises(OSError, match="No space left"), written("/dev/full") as new:
        new.write_text("nothing")


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_what_was_printed_before_stays(name, tmp_path):
    code = (
        "from verax.display.writing import written\n"
        "print('before')\n"
        f"with written({name!r}) as new:\n"
        "    new.write_text('report\\n')\n"
        "print('after')\n"
    )
    out = tmp_path / "out.txt"
    with out.open("w") as file:
        subprocess.run([sys.executable, "-c", code], stdout=file, check=True)
    assert out.read_text() == "before\nreport\nafter\n"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown == "before\nreport\nafter\n"


def test_names_that_cannot_be(tmp_path):
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    for path in (loop, tmp_path / ("x" * 300), tmp_path / "nul\0", tmp_path / "no" / "x", tmp_path):
        with pytest.raises(vx.InputError) as caught, written(path):
            pass
        assert caught.value.argument == "path"
    with written(tmp_path / ("x" * 250)) as new:
        new.write_text("long")
    (tmp_path / "file").write_text("")
    with pytest.raises(vx.InputError):
        make_folder(tmp_path / "file", "out")


WRITER = """
import os, sys
from verax.display.writing import written
with written(sys.argv[1]) as new:
    new.write_text("half")
    print(new.name, flush=True)
    sys.stdin.read()
"""


def test_files_of_killed_writers_are_swept_and_those_of_living_ones_stay(tmp_path):
    target = tmp_path / "report.html"
    (tmp_path / ".report-mine.html").write_text("no file of verax")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, target], **pipes) for _ in range(2)]
    names = [writer.stdout.readline().strip() for writer in writers]
    assert all((tmp_path / name).read_text() == "half" for name in names)
    writers[0].kill()
    writers[0].communicate()
    with written(target) as new:
        new.write_text("whole")
    assert set(os.listdir(tmp_path)) == {"report.html", ".report-mine.html", names[1]}
    writers[1].communicate("")
    assert target.read_text() == "half"
    assert set(os.listdir(tmp_path)) == {"report.html", ".report-mine.html"}


def test_a_full_disk_is_named(tmp_path):
    resource = pytest.importorskip("resource")
    target = tmp_path / "report.html"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        with pytest.raises(OSError, match="File too large") as caught, written(target) as new:
            new.write_bytes(b"x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert caught.value.filename == str(target)
    assert os.listdir(tmp_path) == []
    with pytest.raises(OSError, match="No space left") as caught, written("/dev/full") as new:
        new.write_text("nothing")
    assert caught.value.filename == "/dev/full"
