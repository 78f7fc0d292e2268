"""A process of its own that scores through Spark Connect, which cannot share one with a classic session."""

from __future__ import annotations

import os
import sys

import pytest

import verax as vx
from scanned import COLUMNS, broken, same, table


def main() -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.remote("local[2]")
    session = builder.config("spark.sql.shuffle.partitions", 4).getOrCreate()
    frame = session.createDataFrame(table().drop_columns("all_p").to_pandas())
    assert "connect" in type(frame).__module__
    same(vx.evaluate(vx.scan(frame, probs="p_*", **COLUMNS), ordered=True))
    bad = session.createDataFrame(broken(1300).drop_columns("all_p").to_pandas())
    with pytest.raises(vx.InputError, match=r"\(number 1300\)"):
        vx.evaluate(vx.scan(bad, probs="p_*", id="number", **COLUMNS))
    print("the card and the error are those of a classic session")
    session.stop()


if __name__ == "__main__":
    main()
