"""Web servers that answer wrongly: one line with the address and what to do, in time, and no credential."""

import gzip
import os
import re
import tempfile
import time

import pytest

import verax as vx
from attack.servers import CSV, SERVERS, Hostile, head, says
from commandline import verax
from verax._settings import changed
from verax.common import web

# Answers that are odd, and a file all the same.
FINE = {"headers of bytes": 80, "an encoding that was not asked for": 80}
SECRETS = ("topsecret", "abc123xyz", "hidden")


def asked(server, ending):
    return f"http://me:topsecret@{server.host}/a.{ending}?sig=abc123xyz"


@pytest.fixture
def limits():
    with changed(remote_wait=1.0, most_fetched=2**24):
        yield


@pytest.mark.parametrize("name", FINE)
def test_an_odd_answer_may_be_the_file(name, limits):
    serve, ending = SERVERS[name]
    with Hostile(serve) as server:
        assert vx.evaluate(vx.scan(asked(server, ending))).n_rows == FINE[name]


@pytest.mark.parametrize("name", [name for name in SERVERS if name not in FINE])
def test_any_other_answer_is_one_error_with_its_address(name, limits):
    serve, ending = SERVERS[name]
    before = set(os.listdir(web._folder().name))
    started = time.monotonic()
    with Hostile(serve) as server, pytest.raises((vx.InputError, OSError)) as caught:
        vx.evaluate(vx.scan(asked(server, ending)))
    assert time.monotonic() - started < 15
    # Redirects are followed a few times.
    assert server.requests <= 12
    error = caught.value
    assert f"{server.host}/a.{ending}" in str(error)
    said = error.strerror if isinstance(error, OSError) else str(error)
    # What was got, and what to do.
    assert re.search(r"[.;] [A-Z]\w+ .*\.$|; .*\.|is empty\.$", said), said
    assert not any(secret in str(error) for secret in SECRETS), error
    if isinstance(error, OSError):
        assert set(os.listdir(web._folder().name)) == before


COMMANDED = (
    "a chunk cut short",
    "a redirect to a file",
    "a status of a thousand",
    "reset in the body",
    "a redirect to a user",
)


@pytest.mark.parametrize("name", COMMANDED)
def test_commands_end_with_one_line(name):
    serve, ending = SERVERS[name]
    with Hostile(serve) as server:
        ran = verax("evaluate", asked(server, ending))
    assert ran.returncode == 3, ran
    assert ran.stderr.count("\n") == 1
    assert "Internal error" not in ran.stderr
    assert f"http://{server.host}/a.{ending}: The server " in ran.stderr
    assert not any(secret in ran.stdout + ran.stderr for secret in SECRETS)


def test_what_a_server_compressed_unasked_is_expanded_within_limits(limits):
    field = "Content-Encoding: gzip"
    expanding = pytest.raises(OSError, match="expand to more than 200 times their number")
    shortened = pytest.raises(OSError, match="a part of the file only")
    with Hostile(says(head("200 OK", field) + gzip.compress(bytes(2**25)))) as server, expanding:
        vx.scan(f"http://{server.host}/a.csv")
    with Hostile(says(head("200 OK", field) + gzip.compress(CSV)[:-9])) as server, shortened:
        vx.scan(f"http://{server.host}/a.csv")
    # Some servers name the compression that a name ends with.
    with Hostile(says(head("200 OK", field) + gzip.compress(CSV))) as server:
        assert vx.evaluate(vx.scan(f"http://{server.host}/a.csv.gz")).n_rows == 80


def test_a_full_disk_is_told_from_a_bad_server(limits):
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    refused = pytest.raises(OSError, match="File too large in")
    with Hostile(says(head(length=len(CSV)) + CSV)) as server, refused as caught:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        try:
            vx.scan(f"http://{server.host}/a.csv")
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert tempfile.gettempdir() in str(caught.value)


def test_bombs_of_text_are_refused(tmp_path):
    document = tmp_path / "a.json.gz"
    document.write_bytes(gzip.compress(b'{"label": "' + bytes(2**25)))
    with pytest.raises(vx.InputError, match="it expands to more than"):
        vx.scan(document)
    with changed(longest_line=2**20):
        (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"__label__" + b"a" * 2**21))
        with pytest.raises(vx.InputError):
            vx.scan(tmp_path / "a.txt.gz")
