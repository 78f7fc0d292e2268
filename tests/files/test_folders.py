"""A folder or a pattern is one data set: of one format and one set of columns, or it is refused."""

import pandas as pd
import pytest

import verax as vx
from commandline import verax

ROWS = pd.DataFrame({"label": list("abba"), "p_a": [0.8, 0.4, 0.3, 0.9], "p_b": [0.2, 0.6, 0.7, 0.1]})


def refused(source, *words):
    with pytest.raises(vx.errors.InputError) as error:
        vx.evaluate(vx.scan(source))
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("named", ["", "*"])
def test_two_formats_are_refused_with_both(tmp_path, named):
    ROWS.to_parquet(tmp_path / "0.parquet")
    ROWS.to_csv(tmp_path / "1.csv", index=False)
    refused(f"{tmp_path}/{named}".rstrip("/"), "of one format", "0.parquet is Parquet", "1.csv is CSV")


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("named", ["", "*"])
@pytest.mark.parametrize("change", ["more", "fewer"])
def test_other_columns_are_refused_with_what_does_not_fit(tmp_path, ending, named, change):
    def write(rows, path):
        rows.to_parquet(path) if ending == "parquet" else rows.to_csv(path, index=False)

    wide = ROWS.assign(site="n")
    first, second = (ROWS, wide) if change == "more" else (wide, ROWS)
    write(first, tmp_path / f"0.{ending}")
    write(second, tmp_path / f"1.{ending}")
    lacks = "0." if change == "more" else "1."
    refused(f"{tmp_path}/{named}".rstrip("/"), "the same columns", lacks, "'site'")
    # Columns may be in another order.
    write(first[first.columns[::-1]], tmp_path / f"1.{ending}")
    assert vx.evaluate(vx.scan(tmp_path)).n_rows == 8


@pytest.mark.parametrize("named", ["", "*", "*.csv*"])
def test_hidden_and_temporary_files_are_skipped_and_counted(tmp_path, named):
    ROWS.to_csv(tmp_path / "0.csv", index=False)
    for name in ("1.csv.tmp", "2.csv.part", "_3.csv", ".4.csv", "~5.csv", "6.csv~", "_SUCCESS", "7.csv.crc"):
        (tmp_path / name).write_text("half a li")
    source = f"{tmp_path}/{named}".rstrip("/")
    rows = vx.scan(source)
    assert vx.evaluate(rows).n_rows == 4
    # Patterns do not match files that begin with a dot.
    count = {"": 8, "*": 7, "*.csv*": 6}[named]
    assert f"{count} hidden or temporary files" in " ".join(rows.notes)
    found = verax("evaluate", source)
    assert found.returncode == 0, found.stderr
    assert f"{count} hidden or temporary files" in found.stdout + found.stderr


def test_what_else_is_in_a_folder_is_said(tmp_path):
    ROWS.to_csv(tmp_path / "0.csv", index=False)
    for name in ("README.md", "settings.json", "plot.png"):
        (tmp_path / name).write_text("{}")
    rows = vx.scan(tmp_path)
    assert vx.evaluate(rows).n_rows == 4
    assert rows.notes == ("Files of the folder that are not read: README.md and 2 more.",)


@pytest.mark.parametrize("named", ["", "*/*.csv", "**/*.csv"])
def test_folders_that_name_columns_must_all_do_so(tmp_path, named):
    for site in ("n", "s"):
        (tmp_path / f"site={site}").mkdir()
        ROWS.to_csv(tmp_path / f"site={site}" / "0.csv", index=False)
    source = f"{tmp_path}/{named}".rstrip("/")
    by_site = vx.subgroups(vx.scan(source, by="site"), by="site", rule="brier", least=1)
    rows = {each["label"]: each["card"]["n_rows"] for each in by_site.to_dict()["subgroups"]}
    assert rows == {"n": 4, "s": 4}
    (tmp_path / "other").mkdir()
    ROWS.to_csv(tmp_path / "other" / "0.csv", index=False)
    refused(source, "the same columns", "'site'", "other")


def test_later_records_may_have_more_fields(tmp_path):
    for i, rows in enumerate((ROWS, ROWS.assign(note="x"))):
        rows.to_json(tmp_path / f"{i}.jsonl", orient="records", lines=True)
    assert vx.evaluate(vx.scan(tmp_path, target="label", probs=["p_a", "p_b"])).n_rows == 8
