"""Files are replaced whole or not at all."""

from __future__ import annotations

import os

import pytest

import verax as vx
from verax.writing import written


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
