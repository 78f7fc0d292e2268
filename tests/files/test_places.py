"""Files in stores and on web servers: the same numbers as local ones, and no credential anywhere."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.fs as pafs
import pyarrow.parquet as papq
import pytest

import verax as vx
from commandline import verax
from reports import LIGHT
from servers import KEYS, Web, store

N = 80


def rows(seed, n=N):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    p = np.clip(0.5 + (y - 0.5) * rng.uniform(-0.2, 0.9, n), 0.01, 0.99)
    return pa.table({"id": np.arange(n) + 1000 * seed, "label": y, "p_0": 1 - p, "p_1": p})


def run(code, *typed):
    """What a command prints; it must exit with this code, and an error must be one line."""
    ran = verax(*typed)
    assert ran.returncode == code, ran
    assert code < 2 or ran.stderr.count("\n") == 1, ran
    return ran.stdout + ran.stderr


@pytest.fixture(scope="module")
def s3():
    pytest.importorskip("moto.server")
    with store("preds", "results") as address:
        yield address


@pytest.fixture(scope="module")
def filled(s3, tmp_path_factory):
    """A local folder, and a bucket with the same files."""
    folder = tmp_path_factory.mktemp("local")
    for i, name in enumerate(("site=a/0.parquet", "site=b/0.parquet")):
        (folder / "hive" / name).parent.mkdir(parents=True)
        papq.write_table(rows(i + 1), folder / "hive" / name)
    papq.write_table(rows(1), folder / "one.parquet", row_group_size=16)
    papq.write_table(rows(2), folder / "two.parquet")
    pacsv.write_csv(rows(1), folder / "one.csv")
    pacsv.write_csv(rows(1).drop_columns(["label"]), folder / "submission.csv")
    pacsv.write_csv(rows(1).select(["id", "label"]), folder / "truth.csv")
    table = rows(1).to_pydict()
    np.savez(folder / "one.npz", probs=np.c_[table["p_0"], table["p_1"]], labels=table["label"])
    with pa.OSFile(str(folder / "one.arrow"), "wb") as sink, pa.ipc.new_file(sink, rows(1).schema) as writer:
        writer.write_table(rows(1))
    with pa.CompressedOutputStream(str(folder / "one.jsonl.gz"), "gzip") as sink:
        sink.write("".join(json.dumps(row) + "\n" for row in rows(1).to_pylist()).encode())
    system, _ = pafs.FileSystem.from_uri("s3://preds")
    pafs.copy_files(str(folder), "preds", destination_filesystem=system)
    return folder


def same(local, far, **options):
    """The card of both, which must be equal."""
    a, b = vx.evaluate(vx.scan(local, **options)), vx.evaluate(vx.scan(far, **options))
    assert {name: a[name] for name in a} == {name: b[name] for name in b}
    assert a.n_rows == b.n_rows
    return b


@pytest.mark.parametrize(
    "name",
    [
        "one.parquet",
        "one.csv",
        "one.npz",
        "one.arrow",
        "one.jsonl.gz",
        "[ot][nw]*.parquet",
        "hive",
        "**/0.parquet",
    ],
)
def test_a_store_gives_the_numbers_of_local_files(name, filled):
    options = {"id": "id"} if "npz" not in name else {}
    card = same(str(filled / name), f"s3://preds/{name}", **options)
    assert card.n_rows == (N if name.startswith("one") else 2 * N)


def test_folders_name_columns_in_a_store(filled):
    local, far = (vx.scan(where, by="site") for where in (filled / "hive", "s3://preds/hive"))
    found = repr(vx.subgroups(far, by="site"))
    assert found == repr(vx.subgroups(local, by="site"))
    assert "site" in found


def test_paths_keep_their_slashes(filled):
    """pathlib leaves one slash of a URL, which is restored."""
    handle = vx.scan(Path("s3://preds/one.parquet"))
    assert (handle.name, handle.models) == ("s3://preds/one.parquet", ("one",))
    assert vx.evaluate(vx.scan((filled / "one.csv").as_uri())).n_rows == N


def test_results_go_to_a_store_and_come_back(filled, tmp_path):
    card = vx.evaluate(vx.scan(filled / "one.parquet"))
    card.save("s3://results/new/monday.verax")
    assert vx.load("s3://results/new/monday.verax")["brier"] == card["brier"]
    system, _ = pafs.FileSystem.from_uri("s3://results")
    names = {info.path for info in system.get_file_info(pafs.FileSelector("results", recursive=True))}
    # No temporary name is left.
    assert not any("verax-" in name for name in names)


def test_commands_read_and_write_a_store(filled, change):
    change(**LIGHT)
    typed = ("--json", "--save", "s3://results/cli.verax", "--html", "s3://results/cli.html")
    far = json.loads(run(0, "evaluate", "s3://preds/one.parquet", *typed))
    local = json.loads(run(0, "evaluate", filled / "one.parquet", "--json"))
    assert far["card"]["scores"] == local["card"]["scores"]
    assert "s3://preds/one.parquet" in json.dumps(far)
    page = pafs.FileSystem.from_uri("s3://results")[0].open_input_file("results/cli.html").read().decode()
    assert page.startswith("<!")
    assert "s3:/preds" not in page
    merged = json.loads(run(0, "merge", "s3://results/cli.verax", "--json"))
    assert merged["card"]["n_rows"] == N
    run(0, "compare", "a=s3://preds/one.parquet", f"b={filled / 'one.parquet'}", "--id", "id")


def test_a_state_in_a_store_is_continued(filled):
    state = "s3://results/m.state"
    for i, name in enumerate(("one", "two")):
        # Forecasts of these rows are underconfident, which gives alarms.
        typed = ("--id", "id", "--time", "id", "--unit", "row", "--state", state, "--json")
        ran = verax("monitor", f"s3://preds/{name}.parquet", *typed)
        assert ran.returncode in (0, 1), ran
        assert json.loads(ran.stdout)["n_rows"] == (i + 1) * N
    monitor, other = vx.Monitor.load(state), vx.Monitor.load(state)
    other.update([0, 1], [[0.5, 0.5]] * 2, time=[5000, 5001], ids=[5000, 5001])
    other.save(state)
    with pytest.raises(vx.InputError, match=r"s3://results/m\.state must not have changed"):
        monitor.save(state)


def test_recalibrated_files_and_plots_go_to_a_store(filled):
    typed = ("--method", "temperature", "--save", "s3://results/t.json")
    run(0, "recalibrate", "s3://preds/one.parquet", *typed)
    typed = ("--apply", "s3://preds/two.parquet", "--out", "s3://results/two.parquet")
    run(0, "recalibrate", "--load", "s3://results/t.json", *typed)
    assert vx.evaluate(vx.scan("s3://results/two.parquet")).n_rows == N
    run(0, "decompose", "s3://preds/one.parquet", "--plot", "s3://results/curve.png")
    system, _ = pafs.FileSystem.from_uri("s3://results")
    assert system.open_input_file("results/curve.png").read(4) == b"\x89PNG"


def test_an_input_in_a_store_is_not_overwritten(filled):
    said = run(2, "evaluate", "s3://preds/one.parquet", "--save", "s3://preds/one.parquet")
    assert "s3://preds/one.parquet is one of the files to read" in said


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("s3://preds/onee.parquet", "There is no file 's3://preds/onee.parquet'. Did you mean one.parquet?"),
        ("s3://nobucket/x.parquet", "There is no bucket 's3://nobucket'"),
        ("s3://preds/*.feather", "There is no file 's3://preds/*.feather'"),
        ("hdfs://nowhere/x.parquet", "hdfs:// needs Java and Hadoop's libhdfs, which pyarrow does not bring"),
        ("nosuch://x/y.csv", "nosuch:// needs fsspec and its package for nosuch"),
    ],
)
def test_what_is_not_there_is_one_line_with_the_remedy(source, words, filled):
    assert words in run(2, "evaluate", source)


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("s3://nobucket/a.verax", "There is no s3://nobucket to write a.verax to"),
        ("https://example.org/a.verax", "a web server is read only"),
    ],
)
def test_writing_needs_a_bucket_and_no_web_server(place, words, filled):
    assert words in run(2, "evaluate", filled / "one.parquet", "--save", place)


@pytest.mark.slow
def test_a_server_that_cannot_be_reached():
    said = run(3, "evaluate", "s3://k:topsecret@preds/x.csv?endpoint_override=127.0.0.1:1&scheme=http")
    assert "cannot be reached. Check its name, the network, and AWS_ENDPOINT_URL" in said
    assert "topsecret" not in said


def test_credentials_in_urls_are_used_and_never_shown(filled, s3, monkeypatch, tmp_path):
    for name in (*KEYS, "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    place = f"preds/one.parquet?endpoint_override={s3.removeprefix('http://')}&scheme=http&region=us-east-1"
    source = f"s3://AKIAOTHER:topsecret@{place}"
    ran = verax("evaluate", source, "--json", "--save", tmp_path / "a.verax", "--html", tmp_path / "a.html")
    assert ran.returncode == 0, ran
    assert json.loads(ran.stdout)
    handle = vx.scan(source)
    missing = run(2, "evaluate", source.replace("one.", "none."))
    shown = [ran.stdout, ran.stderr, missing, repr(handle), str(handle.name), repr(vx.evaluate(handle))]
    shown += [path.read_bytes().decode(errors="replace") for path in tmp_path.iterdir()]
    assert not any(word in text for text in shown for word in ("topsecret", "AKIAOTHER", "endpoint_override"))


def test_files_of_web_servers(filled):
    with Web() as web:
        web.files = {name: (filled / name).read_bytes() for name in ("one.parquet", "one.csv")}
        same(filled / "one.parquet", f"{web.address}/one.parquet")
        # It was copied once, for all passes.
        assert web.asked.count("/one.parquet") == 1
        assert f"There is no file '{web.address}/nine.csv'" in run(2, "evaluate", f"{web.address}/nine.csv")
        said = run(2, "evaluate", f"{web.address}/*.csv")
        assert "A web server does not list its files. Name each file." in said


def test_users_and_signatures_of_web_servers_are_not_shown(filled):
    with Web() as web:
        web.files = {"one.csv": (filled / "one.csv").read_bytes()}
        web.users, web.signed = {"one.csv": "me:topsecret"}, {"one.csv": "sig=abc123xyz"}
        shown = run(0, "evaluate", f"http://me:topsecret@{web.host}/one.csv?sig=abc123xyz", "--json")
        assert f"http://{web.host}/one.csv" in shown
        refused = run(3, "evaluate", f"http://me:wrongword@{web.host}/one.csv?sig=wrongsign")
        assert "The server refuses access. Check the credentials" in refused
        shown += refused
        assert not any(word in shown for word in ("topsecret", "abc123xyz", "wrongword", "wrongsign", "me:"))


def test_queries_choose_among_files(filled):
    """Two URLs that differ in their query alone are two files."""
    with Web() as web:
        names = ("one.parquet", "two.parquet")
        web.files = {f"y.parquet?v={i}": (filled / name).read_bytes() for i, name in enumerate(names)}
        handles = [vx.scan(f"{web.address}/y.parquet?v={i}") for i in (0, 1)]
        found = [vx.evaluate(handle)["brier"] for handle in handles]
        assert found == [vx.evaluate(vx.scan(filled / name))["brier"] for name in names]


def test_other_schemes_are_read_by_fsspec(filled):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://box/one.parquet", "wb") as file:
        file.write((filled / "one.parquet").read_bytes())
    same(filled / "one.parquet", "memory://box/one.parquet")
    vx.evaluate(vx.scan("memory://box/*.parquet")).save("memory://box/saved/a.verax")
    assert fsspec.filesystem("memory").ls("/box/saved", detail=False) == ["/box/saved/a.verax"]
