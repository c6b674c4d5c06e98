"""What `explain` prints is reviewed as text; `make golden` writes it anew."""

import os
from pathlib import Path

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.planner.choose import decisions
from windowpane.planner.rules import Final

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
    "integers_by_rank": disordered.window(wp.rows(1000, 10)).agg(wp.count(), wp.mean("volume")),
    "rows_by_arrival": disordered.window(wp.rows(1000, 10, order="arrival")).agg(wp.sum("volume")),
    "collect": disordered.window(wp.tumbling("1 min")).agg(wp.collect("price")),
    "mixed": disordered.window(wp.sliding("10 min", "1 min")).agg(
        wp.count(), wp.sum("price"), wp.median("price"), wp.collect("price")
    ),
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


class Total(wp.UserAggregate):
    columns, type = ("volume",), pa.int64()
    algebra = wp.Algebra("holistic", invertible=True)

    def lift(self, volume):
        return (volume,)

    def combine(self, a, b):
        return (a[0] + b[0],)

    def lower(self, partial):
        return partial[0]

    def identity(self):
        return (0,)

    def invert(self, a, b):
        return (a[0] - b[0],)


@pytest.mark.parametrize(
    ("aggregate", "final"),
    [
        (wp.count("price"), Final.DIFFERENCE),
        (wp.sum("volume"), Final.DIFFERENCE),
        (wp.mean("volume"), Final.DIFFERENCE),
        (wp.sum("price"), Final.TREE),
        (wp.mean("price"), Final.TREE),
        (wp.max("volume"), Final.TREE),
        (wp.variance("volume"), Final.TREE),
        (wp.approx_distinct("symbol"), Final.TREE),
        (Total(), Final.TREE),
        (wp.top_k("symbol", 3), Final.RUNS),
        (wp.collect("volume"), Final.LISTS),
    ],
    ids=lambda given: getattr(given, "name", ""),
)
def test_how_windows_are_answered_follows_from_the_partials_that_the_types_lead_to(aggregate, final):
    plan = disordered.window(wp.sliding("1 h", "1 min"), wp.session("1 min")).agg(aggregate).plan
    sliding, session = decisions(plan)
    assert [rule.then for rule in sliding.final] == [final]
    assert [rule.then for rule in session.final] == [Final.ROW]


def test_no_file_is_left_without_its_query():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(QUERIES)
