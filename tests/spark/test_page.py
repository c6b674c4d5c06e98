"""The Python of docs/spark.md runs as it stands, given a session and folders."""

import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windowpane as wp

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
PAGE = Path(__file__).parents[2] / "docs" / "spark.md"


def test_the_python_of_the_page_gives_answers(spark, tmp_path):
    (tmp_path / "in").mkdir()
    seconds = [0, 30, 90, 200]
    ticks = pa.table(
        {
            "ts": pa.array([s * 1_000_000 for s in seconds], pa.timestamp("us", "UTC")),
            "symbol": ["A"] * 4,
            "price": [1.0, 2.0, 3.0, 4.0],
            "volume": [1, 1, 2, 1],
        }
    )
    pq.write_table(ticks, tmp_path / "in" / "ticks.parquet")
    names = {"spark": spark, "folder": str(tmp_path / "in")}
    names |= {n: str(tmp_path / n) for n in ("results", "checkpoint", "several", "control", "drained")}
    try:
        for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL):
            exec(compile(block, PAGE.name, "exec"), names)  # noqa: S102 - our own text
        for running in spark.streams.active:
            running.processAllAvailable()
    finally:
        for running in spark.streams.active:
            running.stop()
    found = spark.read.parquet(names["results"])
    assert found.columns == ["symbol", "window", "count", "vwap", "revision"]
    assert {row["count"] for row in found.collect()} == {1, 2}
    assert {p.name for p in Path(names["several"]).iterdir()} == {"by_symbol", "overall", "late", "rejects"}
    assert spark.read.parquet(names["several"] + "/overall").count() == 2
    whole = names["query"].plan
    drained = spark.read.parquet(names["drained"])
    assert drained.count() == len(
        wp.stream(ticks, time="ts", keys="symbol")
        .window(*whole.queries[0].windows)
        .agg(wp.count())
        .run()
        .table
    )
    assert names["hours"].isStreaming
    assert names["scores"].columns == ["symbol", "score"]
    outputs = names["side_by_side"].schemas
    assert list(outputs) == ["latest", "latest staleness", "fills", "fills staleness"]
