"""What a command must not write over, refused before the work begins: locally, in stores, by any alias."""

import os
import shutil
import threading
import time

import pyarrow.fs as pafs
import pytest

import verax as vx
from commandline import verax
from servers import KEYS, store

CSV = "label,p_a,p_b\n" + "a,0.75,0.25\nb,0.25,0.75\n" * 20


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.csv").write_text(CSV)
    return tmp_path


@pytest.fixture(scope="module")
def s3():
    pytest.importorskip("moto.server")
    with store("box") as address:
        yield address


def put(name, content):
    system, _ = pafs.FileSystem.from_uri("s3://box")
    with system.open_output_stream(f"box/{name}") as out:
        out.write(content)


def got(name):
    system, _ = pafs.FileSystem.from_uri("s3://box")
    return system.open_input_file(f"box/{name}").read()


def refused(words, *typed):
    started = time.monotonic()
    ran = verax(*typed)
    assert ran.returncode == 2, ran
    assert words in ran.stderr, ran
    assert ran.stderr.count("\n") == 1
    assert not ran.stdout
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("option", ["--html", "--save"])
@pytest.mark.parametrize("place", ["verax.toml", "pyproject.toml", "other/verax.toml", "s3://box/verax.toml"])
def test_configurations_are_no_results(option, place, folder, request):
    if place.startswith("s3"):
        request.getfixturevalue("s3")
    (folder / "other").mkdir()
    refused("says how files are read", "evaluate", "t.csv", option, place)
    assert not (folder / "verax.toml").exists()


def test_the_configuration_that_is_read_by_any_name(folder):
    (folder / "verax.toml").write_text('target = "label"\n')
    (folder / "page.html").hardlink_to(folder / "verax.toml")
    (folder / "mine.toml").write_text('target = "label"\n')
    refused("says how files are read", "evaluate", "t.csv", "--html", "page.html")
    refused(
        "is one of the files to read", "evaluate", "t.csv", "--config", "mine.toml", "--save", "mine.toml"
    )
    assert (folder / "verax.toml").read_text() == (folder / "mine.toml").read_text() == 'target = "label"\n'


def test_saved_files_of_another_kind(folder):
    monitor = vx.Monitor(0.4)
    monitor.save("m.state")
    before = (folder / "m.state").read_bytes()
    for option in ("--html", "--save"):
        refused(
            "verax saved something else in it: the state of a monitor", "evaluate", "t.csv", option, "m.state"
        )
    assert (folder / "m.state").read_bytes() == before
    assert verax("evaluate", "t.csv", "--save", "a.verax").returncode == 0
    # Results may be saved again; no page may take their place, and no state.
    assert verax("evaluate", "t.csv", "--save", "a.verax").returncode == 0
    refused("saved summaries", "evaluate", "t.csv", "--html", "a.verax")
    refused("saved summaries", "monitor", "t.csv", "--time", "label", "--state", "a.verax")
    assert verax("recalibrate", "t.csv", "--method", "temperature", "--save", "r.json").returncode == 0
    refused("verax recalibration", "evaluate", "t.csv", "--html", "r.json")


def test_saved_files_of_another_kind_in_a_store(folder, s3):
    vx.Monitor(0.4).save("s3://box/m.state")
    before = got("m.state")
    refused("the state of a monitor", "evaluate", "t.csv", "--save", "s3://box/m.state")
    assert got("m.state") == before


def test_a_pipe_that_nobody_reads(folder):
    os.mkfifo("pipe.html")
    refused("pipe.html is a pipe that nobody reads", "evaluate", "t.csv", "--html", "pipe.html")
    with pytest.raises(vx.InputError, match="is a pipe that nobody reads"):
        vx.evaluate(vx.scan("t.csv")).save("pipe.html")


def test_a_pipe_with_a_reader_gets_all_of_it(folder):
    os.mkfifo("pipe.json")
    got = []
    reader = threading.Thread(target=lambda: got.append((folder / "pipe.json").read_bytes()))
    reader.start()
    assert verax("evaluate", "t.csv", "--save", "pipe.json").returncode == 0
    reader.join(timeout=60)
    assert got[0].startswith(b"VERAX")


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full"])
def test_devices_are_no_files(device, folder):
    refused(f"{device} is a device; name a file", "evaluate", "t.csv", "--html", device)


ALIASES = [
    "s3://box//t.csv",
    "s3a://box/t.csv",
    "s3://AKIAOTHER:topsecret@box/t.csv",
    "s3://box/t.csv?region=eu-west-1",
    "s3://AKIAOTHER:topsecret@box/t.csv?endpoint_override={host}&scheme=http",
]


@pytest.mark.parametrize("alias", ALIASES)
def test_inputs_in_a_store_by_an_alias(alias, folder, s3):
    put("t.csv", CSV.encode())
    alias = alias.format(host=s3.removeprefix("http://"))
    refused("is one of the files to read", "evaluate", "s3://box/t.csv", "--save", alias)
    refused("is one of the files to read", "evaluate", f"{s3}/box/t.csv", "--save", alias)
    assert got("t.csv") == CSV.encode()


def test_another_store_of_the_same_bucket_is_another_place(folder, s3):
    from verax.cli.arguments import refuse_overwriting

    other = "s3://box/t.csv?endpoint_override=minio.example:9000&scheme=https"
    refuse_overwriting({"given": ["s3://box/t.csv"], "save": other})
    assert set(KEYS) <= set(os.environ)


def test_configurations_survive_in_a_folder_of_links(folder):
    (folder / "verax.toml").write_text('target = "label"\n')
    os.symlink("verax.toml", "page.html")
    refused("says how files are read", "evaluate", "t.csv", "--html", "page.html")
    shutil.copy("t.csv", "u.csv")
    assert (folder / "verax.toml").read_text() == 'target = "label"\n'
