"""Top lists in files and frames: every engine says what is said of the same lists in memory."""

from __future__ import annotations

import json
from functools import cache

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as pads
import pyarrow.parquet as papq
import pytest

import verax as vx
from scanned import alike
from scannedlists import COLUMNS, IDS, MODELS, NAMES, OWN, M, N, in_memory, table
from scattered import cut_engine
from verax.common.idkeys import saving_ids
from verax.report import Report


def analyses(source, *, report=False, **options):
    """What is said of the lists in a source; a report takes a while and holds most of the others."""
    given = {**COLUMNS, "classes": M, "lists": True, **options}
    one = vx.scan(source, probs=MODELS["a"], **given)
    both = vx.scan(source, probs=MODELS, **given)
    return {
        "card": vx.evaluate(one),
        "worst": vx.worst(one, rule="brier", n=4),
        "compare": vx.compare(both, rule=["brier", "log_score"], reference="uniform"),
        "curve": vx.retention(one, rule="brier", metric="coverage", removed=[0, 0.1]),
        "decompose": vx.decompose(one, rule="brier"),
        "subgroups": vx.subgroups(one, by="site"),
        **({"report": Report.of(both)} if report else {}),
    }


@cache
def expected():
    """What is said of them in memory."""
    y, models = in_memory()
    lists = models["a"]
    return {
        "card": vx.evaluate(y, lists, **OWN),
        "worst": vx.worst(y, lists, rule="brier", n=4, ids=IDS),
        "compare": vx.compare(y, models, rule=["brier", "log_score"], reference="uniform", **OWN),
        "curve": vx.retention(y, lists, rule="brier", metric="coverage", removed=[0, 0.1], **OWN),
        "decompose": vx.decompose(y, lists, rule="brier", **OWN),
        "report": Report.of(y, models, ids=IDS, by={"site": table()["site"].to_pylist()}, **OWN),
    }


def same(found):
    """Whether a source says what memory says."""
    exact = expected()
    for name in ("card", "worst", "compare"):
        alike(found[name].to_dict(), exact[name].to_dict())
    curve, other = found["curve"], exact["curve"]
    assert curve.within is None
    assert np.allclose(curve.values, other.values, rtol=0, atol=1e-12)
    assert found["decompose"].score == pytest.approx(exact["decompose"].score, rel=1e-10)
    gap = exact["decompose"].miscalibration - found["decompose"].miscalibration
    assert -1e-12 <= gap <= found["decompose"].whole.within + 1e-12
    if "report" in found:
        same_report(found["report"], exact["report"])
    site = np.asarray(table()["site"]) == "north"
    y, models = in_memory()
    north = vx.brier([y[i] for i in np.flatnonzero(site)], models["a"][site], weights=OWN["weights"][site])
    assert found["subgroups"].lines[0].card["brier"] == pytest.approx(north, rel=1e-12)


def same_report(found, exact):
    """Whether a report says what that on the lists in memory says."""
    assert found.verdict == exact.verdict
    shown, wanted = found.to_dict(), exact.to_dict()
    alike(shown["comparison"], wanted["comparison"])
    for name, own in wanted["models"].items():
        other = shown["models"][name]
        alike(other["card"], own["card"])
        cases = [[(case["id"], case["ranks"]) for case in each["worst"]["cases"]] for each in (other, own)]
        assert cases[0] == cases[1]
        alike(other["lengths"], own["lengths"])
    assert [check["kind"] for check in shown["checks"]] == [check["kind"] for check in wanted["checks"]]


def lines(rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["table", "data set", "pandas", "polars", "query", "duckdb", "files"])
def test_frames_and_files_say_what_memory_says(kind, tmp_path):
    for i in range(3):
        papq.write_table(table().slice(300 * i, 300), tmp_path / f"{i}.parquet", row_group_size=100)
    lists = table()
    found = {
        "table": lambda: lists,
        "data set": lambda: pads.dataset(tmp_path),
        "pandas": lambda: lists.to_pandas(maps_as_pydicts="strict"),
        "polars": lambda: pl.from_arrow(lists.drop_columns("b")),
        "query": lambda: pl.from_arrow(lists.drop_columns("b")).lazy(),
        "duckdb": lambda: duckdb.from_arrow(lists),
        "files": lambda: str(tmp_path / "*.parquet"),
    }[kind]()
    if kind in ("polars", "query"):
        # Polars has no maps.
        handle = vx.scan(found, probs=MODELS["a"], lists=True, classes=M, **COLUMNS)
        alike(vx.evaluate(handle).to_dict(), expected()["card"].to_dict())
        return
    # A column of dictionaries becomes one with a field for every class.
    same(analyses(found, **({"lists": {"missing": "omit"}} if kind == "pandas" else {})))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_parts_and_orders_of_merging_do_not_matter(seed, change, monkeypatch):
    change(list_part_rows=70)
    same(analyses(cut_engine(monkeypatch, table(), seed), report=not seed))


@pytest.mark.long
@pytest.mark.frameworks
def test_dask_says_what_memory_says():
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    frame = table().to_pandas(types_mapper=pd.ArrowDtype)
    same(analyses(dd.from_pandas(frame, npartitions=4, sort=False)))


def records():
    """The lists of the first model as records, as interfaces write them."""
    for row in table().drop_columns("b").to_pylist():
        top = [
            {"token": name, "logprob": float(np.log(t))}
            for name, t in zip(row["a_labels"], row["a_scores"], strict=True)
        ]
        yield {**row, "top_logprobs": top}


@pytest.mark.parametrize("shape", ["tokens", "arrays", "long"])
def test_files_of_records_are_read_in_parts(shape, tmp_path, change):
    change(list_part_records=64, list_part_rows=64)
    rows = [row for row in records() if row["a_labels"]]
    names = ("truth", "w", "who", "site", "number")
    for i in range(2):
        own = rows[i * 400 : (i + 1) * 400 if not i else None]
        if shape == "tokens":
            kept = [{name: row[name] for name in (*names, "top_logprobs")} for row in own]
            (tmp_path / f"{i}.jsonl").write_text(lines(kept))
        elif shape == "arrays":
            kept = [
                {**{name: row[name] for name in names}, "labels": row["a_labels"], "scores": row["a_scores"]}
                for row in own
            ]
            (tmp_path / f"{i}.jsonl").write_text(lines(kept))
        else:
            head = "number,class,probability,truth,w,who,site\n"
            body = [
                f"{row['number']},{name},{t!r},{row['truth']},{row['w']},{row['who']},{row['site']}\n"
                for row in own
                for name, t in zip(row["a_labels"], row["a_scores"], strict=True)
            ]
            (tmp_path / f"{i}.csv").write_text(head + "".join(body))
    source = sorted(tmp_path.iterdir())
    handle = vx.scan(tmp_path if shape == "tokens" else source, classes=M, **COLUMNS)
    assert handle.lists
    rows_of = [i for i, row in enumerate(records()) if row["a_labels"]]
    y, models = in_memory()
    own = {name: values[rows_of] for name, values in OWN.items()}
    memory = vx.evaluate([y[i] for i in rows_of], models["a"][rows_of], **own)
    card = vx.evaluate(handle)
    assert (card.n_rows, card.n_groups, card.n_invalid) == (memory.n_rows, memory.n_groups, memory.n_invalid)
    for name, score in memory.scores.items():
        assert card.scores[name].mean == pytest.approx(score.mean, rel=1e-9)
    # Positions of named classes are known from the first records, and hold for all.
    if shape == "arrays":
        by_position = [
            {**row, "truth": NAMES.index(row["truth"])}
            for row in map(json.loads, source[0].read_text().splitlines())
        ]
        source[0].write_text(lines(by_position))
        found = vx.evaluate(vx.scan(source[0], classes=NAMES, **COLUMNS))
        whole = vx.evaluate([y[i] for i in rows_of[:400]], models["a"][rows_of[:400]])
        assert found.coverage == pytest.approx(
            np.average([row["truth"] in row["a_labels"] for row in rows[:400]], weights=own["weights"][:400])
        )
        assert found.longest == whole.longest


def test_invalid_lists_are_named_or_left_out(tmp_path):
    scores = table()["a_scores"].to_pylist()
    bad = next(i for i, row in enumerate(scores) if i > 500 and row)
    scores[bad] = [1.5, *scores[bad][1:]]
    broken = table().set_column(2, "a_scores", pa.array(scores))
    given = {**COLUMNS, "probs": MODELS["a"], "lists": True, "classes": M}
    with pytest.raises(vx.InputError, match=f"row {bad} holds 1.5") as caught:
        vx.evaluate(vx.scan(broken, **given))
    assert caught.value.rows == (bad,)
    card = vx.evaluate(vx.scan(broken, invalid="skip", **given))
    y, models = in_memory()
    rest = np.delete(np.arange(N), bad)
    assert (card.n_rows, card.skipped.rows) == (N - 1, (bad,))
    exact = vx.brier([y[i] for i in rest], models["a"][rest], weights=OWN["weights"][rest])
    assert card["brier"] == pytest.approx(exact, rel=1e-12)
    both = vx.compare(vx.scan(broken, invalid="skip", **{**given, "probs": MODELS}), rule="brier")
    assert both.n_rows == N - 1


def test_weights_that_are_no_numbers_are_named_by_their_row_or_left_out():
    truth, weights = table()["truth"].to_pylist(), table()["w"].to_numpy().astype(float)
    truth[3], weights[17] = None, np.nan
    broken = table().drop_columns(["truth", "w"]).append_column("truth", pa.array(truth))
    broken = broken.append_column("w", pa.array(weights, from_pandas=False))
    given = {**COLUMNS, "probs": MODELS["a"], "lists": True, "classes": M}
    card = vx.evaluate(vx.scan(broken, invalid="skip", **given))
    assert (card.n_rows, card.skipped.rows) == (N - 2, (3, 17))
    with pytest.raises(vx.InputError, match="row 17 holds nan"):
        vx.evaluate(vx.scan(broken.set_column(broken.num_columns - 2, "truth", table()["truth"]), **given))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"classes": None}, "must be stated for a file of lists"),
        ({"lists": {"shapes": "chat"}}, "must have options that lists have: shape"),
        ({"logits": True}, "does not apply to top lists"),
        ({"probs": ["a_labels", "a_scores", "w"]}, "must be the column of lists, or those of"),
        ({"lists": {"outcomes": "gold.csv"}}, "must be in the same table as the predictions"),
        ({"classes": NAMES[:7]}, "must list classes that are among the names"),
    ],
)
def test_what_cannot_be_read_says_so(options, said):
    given = {**COLUMNS, "probs": MODELS["a"], "lists": True, "classes": M, **options}
    with pytest.raises(vx.InputError, match=said):
        vx.evaluate(vx.scan(table(), **given))


def test_listed_classes_that_are_neither_texts_nor_whole_numbers_are_refused():
    lists = pa.table({"label": [1, 2], "classes": [[1.0, 2.0], [2.0]], "probs": [[0.6, 0.3], [0.9]]})
    with pytest.raises(vx.InputError, match="must hold classes that are texts or whole numbers; row 0 holds"):
        vx.evaluate(vx.scan(lists, target="label", lists=True, classes=[1, 2, 3]))


def test_two_kinds_of_groups_and_ids_of_two_columns_say_what_memory_says():
    y, models = in_memory()
    site = np.asarray(table()["site"])
    given = {**COLUMNS, "probs": MODELS["a"], "lists": True, "classes": M}
    given |= {"groups": [COLUMNS["groups"], "site"], "id": [COLUMNS["id"], "site"]}
    handle = vx.scan(table(), **given)
    wanted = vx.evaluate(y, models["a"], weights=OWN["weights"], groups=[OWN["groups"], site])
    alike(vx.evaluate(handle).to_dict(), wanted.to_dict())
    case = vx.worst(handle, rule="brier", n=1)[0]
    assert case.id == f"{IDS[case.row]}, {site[case.row]}"


def test_what_lists_cannot_do_says_so(tmp_path):
    handle = vx.scan(table(), probs=MODELS["a"], lists=True, classes=M, **COLUMNS)
    with pytest.raises(vx.errors.RuleError, match="A top list has no cumulative probabilities"):
        vx.evaluate(handle, ordered=True)
    with pytest.raises(vx.InputError, match="cannot be used with top lists"):
        vx.evaluate(handle, costs="zero_one")
    with pytest.raises(vx.InputError, match="must be uniform or one of the models"):
        vx.compare(handle, rule="brier", reference="frequencies")
    with pytest.raises(vx.InputError, match="Pass reference='uniform' to measure the skill"):
        vx.compare(handle, rule="brier")
    long = pa.table({"row_id": [0, 0], "class": ["a", "b"], "probability": [0.5, 0.2], "truth": ["a", "a"]})
    with pytest.raises(vx.InputError, match="must be grouped by its ids first"):
        vx.scan(long, lists=True, classes=9)


def test_summaries_are_saved_and_merged(tmp_path):
    given = {**COLUMNS, "classes": M, "probs": MODELS["a"], "lists": True}
    for i in range(3):
        shard = vx.scan(table().slice(300 * i, 300), **given, record="a")
        _ = vx.evaluate(shard), vx.worst(shard, rule="brier", n=4), vx.decompose(shard, rule="brier")
        with saving_ids("plain"):
            shard.save(tmp_path / f"{i}.verax")
    week = vx.scan(sorted(tmp_path.glob("*.verax")))
    exact = expected()
    assert week.lists
    alike(vx.evaluate(week).to_dict(), exact["card"].to_dict())
    assert [case.id for case in vx.worst(week, rule="brier", n=4)] == [case.id for case in exact["worst"]]
    assert vx.decompose(week, rule="brier").score == pytest.approx(exact["decompose"].score, rel=1e-10)


def test_small_files_of_lists_tell_their_classes_themselves(tmp_path):
    record = {"label": "a", "classes": ["a", "b"], "probabilities": [0.75, 0.25]}
    path = tmp_path / "lists.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (record, {**record, "label": "b"})))
    handle = vx.scan(path)
    assert (handle.lists, handle.classes) == (False, ("a", "b"))
    assert vx.evaluate(handle)["brier"] == pytest.approx(vx.brier([0, 1], [[0.75, 0.25]] * 2))
    assert vx.scan(path, lists=True).lists
