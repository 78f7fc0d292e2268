"""Small files that would cost much: each is refused within bounded time and memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from itertools import count

import pytest

import verax as vx
from commandline import verax
from evallogs import inspect_sample, write_eval
from verax.common.packing import Writer, dump, load

DEEP = 20_000


def _deep(path):
    text = '{"label": "a", "p_a": 0.5, "p_b": 0.5, "x": '
    path.write_text(text + "[" * DEEP + "]" * DEEP + "}\n")


def _deep_with_pairs_between(path):
    """Brackets that are closed at once do not hide those that are not."""
    text = '{"label": "a", "p_a": 0.5, "p_b": 0.5, "x": '
    path.write_text(text + "[[]," * DEEP + "0" + "]" * DEEP + "}\n")


def _keys(path):
    path.write_text("".join(f'{{"k{i}": 0.5}}\n' for i in range(20_000)))


def _one_line(path):
    path.write_bytes(b"a," * 50_000_000)


def _columns(path):
    path.write_text(",".join(f"p_{i}" for i in range(100_000)) + "\n")


FILES = {
    "deep.jsonl": (_deep, "nested more than 256 levels deep"),
    "pairs.jsonl": (_deep_with_pairs_between, "nested more than 256 levels deep"),
    "keys.jsonl": (_keys, "20,000 lines have 20,000 different ones"),
    "line.csv": (_one_line, "at most 16,777,216 bytes"),
    "columns.csv": (_columns, "at most 65,536 columns"),
}

# The limits are for the whole process: all files together.
_SCRIPT = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, (40, 41))
import verax as vx
import pyarrow.csv, pyarrow.json
base = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (base + 2**30, base + 2**30))
for path in sys.argv[1:]:
    try:
        vx.evaluate(vx.scan(path))
        print("accepted")
    except vx.InputError as error:
        print(str(error)[:300].replace(chr(10), " "))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="limits of processes")
def test_costly_files_are_refused_in_little_time_and_memory(tmp_path):
    for name, (write, _) in FILES.items():
        write(tmp_path / name)
    paths = [str(tmp_path / name) for name in FILES]
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT, *paths], capture_output=True, text=True, check=False, env=os.environ
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    for (name, (_, said)), line in zip(FILES.items(), ran.stdout.splitlines(), strict=True):
        assert said in line, name


def test_nesting_within_the_limit_is_read(tmp_path):
    path = tmp_path / "a.jsonl"
    record = '{"label": "%s", "p_a": 0.5, "p_b": 0.5, "x": %s, "text": "%s"}\n'
    deep = "[" * 100 + "]" * 100
    path.write_text(record % ("a", deep, "[" * 500) + record % ("b", deep, "{{[" * 200))
    assert vx.evaluate(vx.scan(path)).n_rows == 2


def test_lines_with_some_keys_of_their_own_are_read(tmp_path):
    path, counter = tmp_path / "a.jsonl", count()
    record = {"label": "a", "p_a": 0.5, "p_b": 0.5}
    path.write_text("".join(json.dumps({**record, f"k{next(counter) % 50}": 1}) + "\n" for _ in range(500)))
    assert vx.evaluate(vx.scan(path)).n_rows == 500


def test_a_small_saved_file_does_not_expand_to_many_texts():
    """As a crafted file may: lengths of texts that are all zero, in the form that leaves zeros out."""
    n = 60_000_000
    lengths = {"$": "array", "dtype": "<u4", "shape": [n], "filled": 0, "n": 0}
    texts = {"$": "texts", "shape": [n], "lengths": lengths, "fixed": False, "n": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Writer, "plain", lambda self, value: {"labels": texts})
        crafted = dump("example", {})
    assert len(crafted) < 400
    with pytest.raises(vx.InputError, match="larger than allowed"):
        load(crafted, "example")


def test_long_names_are_cut_in_the_terminal(tmp_path):
    name = "x" * 1_000_000
    path = tmp_path / "a.csv"
    path.write_text(f"label,p_{name},p_b\n{name},0.6,0.4\nb,0.3,0.7\n")
    ran = verax("evaluate", path)
    assert ran.returncode == 0, ran.stderr
    assert len(ran.stdout) < 30_000
    assert "in all)" in ran.stdout


DOUBTFUL = {
    "a.json": '[{"label": "a", "p_a": 0.2, "p_b": 0.8, "p_a": 0.3}]',
    "a.jsonl": '{"label": "a", "p_a": 0.2, "p_b": 0.8, "p_a": 0.3}\n',
    "lists.jsonl": '{"outcome": "a", "probs": {"a": 0.2, "b": 0.1, "a": 0.7}}\n',
    "lists.json": '[{"outcome": "a", "probs": {"a": 0.2, "b": 0.1, "a": 0.7}}]',
}


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_key_that_occurs_twice_is_refused(name, tmp_path):
    path = tmp_path / name
    path.write_text(DOUBTFUL[name])
    with pytest.raises(vx.InputError, match=r"occurs twice|specified twice|two columns called"):
        vx.evaluate(vx.scan(path))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_of_an_archive_that_is_there_twice_is_refused(tmp_path):
    path = tmp_path / "log.eval"
    write_eval(path, [inspect_sample(i, "C") for i in range(3)], method=zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(path, "a") as archive:
        name = next(name for name in archive.namelist() if name.startswith("samples/"))
        archive.writestr(name, archive.read(name))
    ran = verax("evaluate", path)
    assert ran.returncode == 2
    assert "is there twice" in ran.stderr
