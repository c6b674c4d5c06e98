"""What `explain` prints is reviewed as text; `make golden` writes it anew."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

import windowpane as wp

FOLDER = Path(__file__).parent / "explain"
REWRITE = os.environ.get("WINDOWPANE_GOLDEN") == "rewrite"
SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us"),
        "symbol": pa.string(),
        "price": pa.float64(),
        "volume": pa.int64(),
        "opens": pa.bool_(),
    }
)


def ticks(**options):
    return wp.stream(schema=SCHEMA, time="ts", keys="symbol", name="ticks", **options)


ordered = ticks()
disordered = ticks(delay="2 s")
QUERIES = {
    "tumbling": ordered.window(wp.tumbling("1 min")).agg(wp.count(), wp.sum("volume")),
    "sliding_shared": disordered.window(
        wp.sliding("10 min", "1 min"), wp.sliding("1 h", "5 min"), wp.tumbling("1 day")
    ).agg(vwap=wp.weighted_mean("price", "volume")),
    "session": ticks(delay="2 s", lateness="1 min")
    .window(wp.session("30 s"))
    .agg(wp.count(), wp.first("price"), wp.last("price")),
    "rows_by_rank": disordered.window(wp.rows(1000, 10).per()).agg(wp.max("price")),
    "rows_by_arrival": disordered.window(wp.rows(1000, 10, order="arrival")).agg(wp.sum("volume")),
    "collect": disordered.window(wp.tumbling("1 min")).agg(wp.collect("price")),
    "delimited": disordered.window(wp.delimited(start="opens")).agg(total=wp.sum("volume")),
    "per_row": disordered.window(wp.per_row("5 min", every=5)).agg(wp.quantile("price", 0.9)),
    "thousand_windows": disordered.window(*(wp.tumbling(f"{i + 1} s") for i in range(1000))).agg(
        wp.sum("volume")
    ),
    "melded_heartbeat": ticks(punctuation=wp.melded("symbol", wp.heartbeat("30 s", "1 s")))
    .window(wp.cumulative("1 h", "1 day"), wp.landmark("1 h"))
    .agg(wp.median("price")),
    "another_measure": wp.stream(
        schema=pa.schema({"km": pa.int64(), "car": pa.string()}), time="km", delay=5, name="trips"
    )
    .window(wp.sliding(100, 10))
    .agg(cars=wp.distinct("car")),
}


@pytest.mark.parametrize("name", QUERIES)
def test_explain_is_what_was_reviewed(name):
    text, path = QUERIES[name].explain(), FOLDER / f"{name}.txt"
    if REWRITE:
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8"), f"{path.name}: look at the change, then run `make golden`"


def test_no_file_is_left_without_its_query():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(QUERIES)
