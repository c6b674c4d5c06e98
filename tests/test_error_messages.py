"""The full text of each message that a user can meet: it names the column, the value and the remedy."""
# ruff: noqa: E501  (a message stands on one line, as a user reads it)

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane import errors

SCHEMA = pa.schema(
    {
        "ts": pa.timestamp("us"),
        "symbol": pa.string(),
        "price": pa.float64(),
        "volume": pa.int64(),
        "opens": pa.bool_(),
        "fee": pa.decimal128(10, 2),
        "tags": pa.list_(pa.string()),
    }
)
IT_HAS = "it has ts, symbol, price, volume, opens, fee, tags."
ROWS = pa.table({"ts": [1, 2, 3], "router": ["a", "b", "a"], "bytes": [2**62, 2**62, 2**62]})


def ticks(**options):
    return wp.stream(**{"time": "ts", "schema": SCHEMA, "name": "ticks", **options})


def over(*windows, **options):
    return ticks(**options).window(*windows).agg(wp.count())


def of(*aggregates, **named):
    return ticks().window(wp.tumbling("1 min")).agg(*aggregates, **named)


def rows(**options):
    return wp.stream(ROWS, time="ts", **options).window(wp.tumbling(10)).agg(wp.count())


class Difference(wp.UserAggregate):
    columns, type = ("volume",), pa.int64()
    algebra = wp.Algebra("distributive", commutative=False, associative=False)

    def lift(self, volume):
        return (volume,)

    def combine(self, a, b):
        return (a[0] - b[0],)

    def lower(self, partial):
        return partial[0]

    def identity(self):
        return (0,)


class Total(Difference):
    algebra = wp.Algebra("distributive")


class Halved(Difference):
    algebra = wp.Algebra("distributive", invertible=True)


CASES = {
    errors.UnknownColumn: [
        (lambda: ticks(time="tss"), f"ticks has no column 'tss'; {IT_HAS} Did you mean 'ts'?"),
        (
            lambda: ticks(time=None),
            f"ticks has no column None; {IT_HAS} Columns go by their names, which are texts.",
        ),
        (lambda: ticks(keys="symbl"), f"ticks has no column 'symbl'; {IT_HAS} Did you mean 'symbol'?"),
        (
            lambda: ticks(keys=["symbol", 5]),
            f"ticks has no column 5; {IT_HAS} Columns go by their names, which are texts.",
        ),
        (
            lambda: ticks().window(wp.tumbling(1), keys="sym"),
            f"ticks has no column 'sym'; {IT_HAS} Did you mean 'symbol'?",
        ),
        (lambda: of(wp.sum("prize")), f"ticks has no column 'prize'; {IT_HAS} Did you mean 'price'?"),
        (lambda: of(wp.sum("x")), f"ticks has no column 'x'; {IT_HAS} Add the column to the rows first."),
        (
            lambda: over(wp.delimited(start="open")),
            f"ticks has no column 'open'; {IT_HAS} Did you mean 'opens'?",
        ),
        (lambda: ticks(ties="volumes"), f"ticks has no column 'volumes'; {IT_HAS} Did you mean 'volume'?"),
        (
            lambda: ticks(punctuation=wp.external("opns")),
            f"ticks has no column 'opns'; {IT_HAS} Did you mean 'opens'?",
        ),
        (
            lambda: ticks(punctuation=wp.melded("simbol", wp.ordered())),
            f"ticks has no column 'simbol'; {IT_HAS} Did you mean 'symbol'?",
        ),
        (
            lambda: over(wp.rows(5).per("symbols")),
            f"ticks has no column 'symbols'; {IT_HAS} Did you mean 'symbol'?",
        ),
        (
            lambda: over(wp.tumbling(5, on="vol")),
            f"ticks has no column 'vol'; {IT_HAS} Did you mean 'volume'?",
        ),
        (
            lambda: rows().start().push(ROWS.drop_columns(["bytes"])),
            "the batch has no column 'bytes'; it has ts, router. Add the column to the rows first.",
        ),
    ],
    errors.WrongType: [
        (
            lambda: of(wp.sum("symbol")),
            "column 'symbol' has type string, but a number for sum() is needed. Cast the column to double or int64, or use count() or distinct().",
        ),
        (
            lambda: of(wp.mean("fee")),
            "column 'fee' has type decimal128(10, 2), but a number for mean() is needed. Cast the column to double or int64.",
        ),
        (
            lambda: of(wp.sum("tags")),
            "column 'tags' has type list<item: string>, but a number for sum() is needed. Select the field or element you need as a column of its own.",
        ),
        (
            lambda: of(wp.max("symbol")),
            "column 'symbol' has type string, but a number, time, date or boolean for max() is needed. Use first(), last(), top_k() or collect() for such a column.",
        ),
        (
            lambda: of(wp.collect("tags")),
            "column 'tags' has type list<item: string>, but a number, time, date, boolean, string or binary for collect() is needed. Select the field or element you need as a column of its own.",
        ),
        (
            lambda: ticks(time="symbol"),
            "column 'symbol' has type string, but a time (timestamp, date or integer) is needed. Parse it first, for example with pyarrow.compute.strptime, or name another column.",
        ),
        (
            lambda: ticks(time="price"),
            "column 'price' has type double, but a time (timestamp, date or integer) is needed. Parse it first, for example with pyarrow.compute.strptime, or name another column.",
        ),
        (
            lambda: ticks(time="opens"),
            "column 'opens' has type bool, but a time (timestamp, date or integer) is needed. Parse it first, for example with pyarrow.compute.strptime, or name another column.",
        ),
        (
            lambda: ticks(keys="tags"),
            "column 'tags' has type list<item: string>, but a key of plain values is needed. Use one field of it as the key, or turn it into text first.",
        ),
        (
            lambda: ticks(ties="price"),
            "column 'price' has type double, but an integer for ties is needed. Cast the column, or leave `ties` out: then the content of tuples orders equal times.",
        ),
        (
            lambda: ticks(punctuation=wp.external("volume")),
            "column 'volume' has type int64, but a boolean for external() is needed. Compare it first, for example with pyarrow.compute.equal.",
        ),
        (
            lambda: over(wp.delimited(end="price")),
            "column 'price' has type double, but a boolean for delimited() is needed. Compare it first, for example with pyarrow.compute.equal.",
        ),
        (
            lambda: rows().start().push(ROWS.set_column(2, "bytes", pa.array(["1", "2", "3"]))),
            "column 'bytes' has type string, but int64, as in the first batch, is needed. Cast the column before it is pushed.",
        ),
        (
            lambda: wp.stream("ticks.csv", time="ts"),
            "str is no stream of rows. Give a pyarrow Table, RecordBatch or reader, a pandas or Polars DataFrame, or a dict of lists.",
        ),
        (
            lambda: wp.stream({"ts": [1, 2], "v": [1]}, time="ts"),
            "the rows do not form columns of one type each: Column 1 named v expected length 2 but got length 1. Give every column one type; for a list of dicts use pyarrow.Table.from_pylist.",
        ),
        (
            lambda: rows().start().push(5),
            "int is no stream of rows. Give a pyarrow Table, RecordBatch or reader, a pandas or Polars DataFrame, or a dict of lists.",
        ),
    ],
    errors.BadWindow: [
        (
            lambda: wp.sliding("10 min", 0),
            "sliding window: slide is 0, but it must be above 0. Give a positive slide.",
        ),
        (
            lambda: wp.sliding("10 min", -1),
            "sliding window: slide is -1, but it must be above 0. Give a positive slide.",
        ),
        (
            lambda: wp.tumbling("0 s"),
            "sliding window: size is 0, but it must be above 0. Give a positive size.",
        ),
        (lambda: wp.session(0), "session window: gap is 0, but it must be above 0. Give a positive gap."),
        (lambda: wp.rows(0), "rows window: size is 0, but it must be above 0. Give a positive size."),
        (
            lambda: wp.rows("5"),
            "rows window: size is '5', but it must be a whole number. Give an int above 0.",
        ),
        (
            lambda: wp.rows(5, 1.5),
            "rows window: slide is 1.5, but it must be a whole number. Give an int above 0.",
        ),
        (
            lambda: wp.per_row("1 s", every="2"),
            "per_row window: every is '2', but it must be a whole number. Give an int above 0.",
        ),
        (
            lambda: wp.last_rows(True, "1 s"),
            "last_rows window: size is True, but it must be a whole number. Give an int above 0.",
        ),
        (
            lambda: wp.tumbling(""),
            "an empty text is no duration. Write a number and a unit, such as '10 minutes'.",
        ),
        (
            lambda: wp.tumbling("10 minuets"),
            "'10 minuets' is no duration. Write a number and a unit, such as '10 minutes' or '1 h 30 min'.",
        ),
        (
            lambda: wp.tumbling("-10 min"),
            "'-10 min' is no duration. Write a number and a unit, such as '10 minutes' or '1 h 30 min'.",
        ),
        (
            lambda: wp.tumbling(1.5),
            "1.5 is no duration. Write '10 minutes', a timedelta or int microseconds.",
        ),
        (
            lambda: wp.sliding("10 min", None),
            "None is no duration. Write '10 minutes', a timedelta or int microseconds.",
        ),
        (
            lambda: wp.tumbling("99999999 weeks"),
            "sliding window: size is 60479999395200000000, but it must be at most 2305843009213693952. Give a smaller one.",
        ),
        (
            lambda: wp.tumbling(10, origin=2**62),
            "sliding window: origin is 4611686018427387904, but it must be from -2305843009213693952 to 2305843009213693952.",
        ),
        (
            lambda: wp.tumbling("1 min", on="km"),
            "a window on 'km' is measured in that column's units, so '1 min' must be an int.",
        ),
        (
            lambda: wp.cumulative("7 min", "1 h"),
            "cumulative window: period 3600000000 is no multiple of step 420000000. Choose a step that divides the period.",
        ),
        (
            lambda: wp.rows(5, order="rank"),
            "rows window: order is 'rank'. Use 'time' (event-time rank) or 'arrival'.",
        ),
        (
            wp.delimited,
            "delimited window: neither start nor end is given. Name at least one boolean column.",
        ),
        (
            lambda: ticks(delay="soon"),
            "'soon' is no duration. Write a number and a unit, such as '10 minutes' or '1 h 30 min'.",
        ),
        (
            lambda: ticks(lateness=None),
            "None is no duration. Write '10 minutes', a timedelta or int microseconds.",
        ),
    ],
    errors.BadAggregate: [
        (
            lambda: of(Difference()),
            "'difference_volume' is declared non-associative, but windowpane shares partials between windows, which needs (x + y) + z = x + (y + z). Carry more in the partial (a mean carries sum and count), or use collect() and compute from the list.",
        ),
        (
            lambda: of(Halved()),
            "halved is declared invertible but has no invert(). Add invert(a, b), or declare invertible=False.",
        ),
        (lambda: wp.quantile("price", 2), "quantile: q is 2, but it must be from 0 to 1. The median is 0.5."),
        (
            lambda: wp.quantile("price", "0.5"),
            "quantile: q is '0.5', but it must be from 0 to 1. The median is 0.5.",
        ),
        (
            lambda: wp.quantile("price", []),
            "quantile: q is an empty list. Give at least one number from 0 to 1.",
        ),
        (lambda: wp.top_k("price", "3"), "top_k: k is '3', but it must be a whole number of at least 1."),
        (
            lambda: wp.heavy_hitters("price", 0),
            "heavy_hitters: share is 0, but it must be above 0 and at most 1.",
        ),
        (
            lambda: wp.variance("price", ddof=-1),
            "ddof is -1, but it must be 0 (population) or more (1: sample).",
        ),
        (
            lambda: wp.approx_distinct("price", lg_k=3),
            "approx_distinct: lg_k is 3, but it must be a whole number from 5 to 26.",
        ),
        (
            lambda: wp.approx_quantile("price", 0.5, k=3),
            "approx_quantile: k is 3, but it must be a whole number from 8 to 65535.",
        ),
    ],
    errors.BadQuery: [
        (
            lambda: (
                wp.stream({"ts": [1], "window": ["a"]}, time="ts", keys="window")
                .window(wp.tumbling(1))
                .agg(wp.count())
            ),
            "the key column 'window' has the name of a result column. Rename it first.",
        ),
        (
            lambda: wp.stream(pa.table([[1], [2]], names=["ts", "ts"]), time="ts"),
            "the rows have two columns 'ts'. Rename one of them first.",
        ),
        (lambda: ticks(keys=5), "keys is 5. Give the name of a column or a list of names; none: keys=()."),
        (
            lambda: ticks(delay="1 s", punctuation=wp.ordered()),
            "both delay and punctuation are given. Give one: a delay is the policy delay(...).",
        ),
        (
            lambda: ticks(punctuation="2 s"),
            "punctuation is '2 s', which is no policy for this. Give one made by ordered(), delay('2 s'), slack(100), external('column') or manual().",
        ),
        (lambda: ticks(delay=-1), "punctuation: delay is -1 microseconds. Give 0 to 2305843009213693952."),
        (lambda: ticks(lateness=-1), "lateness is -1. Give 0 to 2305843009213693952 microseconds."),
        (lambda: ticks(max_ahead=-1), "max_ahead is -1. Give 0 to 2305843009213693952 microseconds."),
        (lambda: wp.slack(-1), "slack of -1 rows. Give 0 to 1,000,000 rows, or use a delay."),
        (lambda: wp.slack("5"), "slack of '5' rows. Give 0 to 1,000,000 rows, or use a delay."),
        (
            lambda: wp.heartbeat(0),
            "heartbeat: idle is 0. Give the time without tuples before the clock takes over.",
        ),
        (
            lambda: wp.heartbeat("1 s", policy="1 s"),
            "heartbeat: policy is '1 s', which is no policy for this. Give one made by ordered(), delay('2 s'), slack(100), external('column') or manual().",
        ),
        (
            lambda: wp.melded("a", wp.melded("b", wp.ordered())),
            "'a' melds a melded policy. Meld by one column only.",
        ),
        (
            lambda: wp.melded("a", wp.ordered(), sources="xy"),
            "melded: sources is 'xy'. Give a list of the values of 'a'.",
        ),
        (lambda: wp.stream(time="ts"), "the stream has neither a source nor a schema. Give one of them."),
        (
            lambda: wp.stream([], time="ts"),
            "the source is empty, so its columns are not known. Give a schema too.",
        ),
        (
            lambda: wp.stream(time="ts", schema=["ts"]),
            "schema is a list. Give a pyarrow Schema: pyarrow.schema(...).",
        ),
        (over, "query 'query' has no window. Give at least one: .window(tumbling('1 min'))."),
        (lambda: over("1 min"), "'1 min' is no window. Give one such as tumbling('1 min')."),
        (
            lambda: over(wp.tumbling),
            "the function tumbling is no window. Give one such as tumbling('1 min').",
        ),
        (
            lambda: over(wp.rows(5), wp.tumbling("1 min")),
            "query 'query' mixes windows measured in rows with windows measured in 'ts', so its window column would have two types. Make two queries; they still share one pass.",
        ),
        (
            lambda: over(wp.tumbling(5, on="volume")),
            "a window is on 'volume', but the stream progresses on 'ts'. Read the data as a stream of its own: stream(..., time='volume').",
        ),
        (of, "query 'query' has no aggregate. Give at least one: .agg(count())."),
        (lambda: of("count"), "'count' is no aggregate. Give one such as count() or sum('price')."),
        (
            lambda: of(n=wp.count),
            "the function count is no aggregate. Give one such as count() or sum('price').",
        ),
        (lambda: of(wp.count(), emit="early"), "emit is 'early'. Use 'final' or 'update'."),
        (
            lambda: of(wp.count(), wp.sum("price"), count=wp.sum("volume")),
            "the result would have two columns 'count'. Name one of them anew: .agg(other=wp.sum('volume')).",
        ),
        (
            lambda: of(wp.quantile("price", [0.1, 0.9]), wp.quantile("price", 0.5)),
            "the result would have two columns 'quantile_price'. Name one of them anew: .agg(other=wp.quantile('price', q=0.5)).",
        ),
        (
            lambda: of(wp.count(), count=Total()),
            "the result would have two columns 'count'. Name one of them anew: .agg(other=Total(...)).",
        ),
        (
            lambda: of(window=wp.count()),
            "the result would have two columns 'window'. Name one of them anew: .agg(other=wp.count()).",
        ),
        (
            lambda: of(wp.count()).run(),
            "this stream was made from a schema, so there is nothing to run over. Use .start() and push.",
        ),
        (
            lambda: twice(rows()),
            "this stream was read already. Make the stream anew, or run all its queries with wp.run(...).",
        ),
        (
            lambda: after_close(rows()),
            "this run is closed: its stream has ended. Start a new one with .start().",
        ),
        (
            lambda: rows(punctuation=wp.melded("router", wp.ordered(), sources=["a"])).run(),
            "source 'b' in column 'router' is not among the listed sources.",
        ),
        (wp.run, "there is no query to run. Give at least one."),
        (wp.start, "there is no query to run. Give at least one."),
        (lambda: wp.run(5), "int is no query. Give what .window(...).agg(...) returns."),
        (
            lambda: wp.start(rows(), ticks().window(wp.tumbling(5))),
            "Windowed is no query. Give what .window(...).agg(...) returns.",
        ),
        (
            lambda: wp.resume(rows().start().snapshot(), "query"),
            "str is no query. Give what .window(...).agg(...) returns.",
        ),
        (
            lambda: wp.run(rows(), rows()),
            "the queries read different streams. Build them from one wp.stream(...), or run them apart.",
        ),
        (
            lambda: two_queries().table,
            "the run had the queries query_1, query_2. Ask for one: result.tables[name].",
        ),
        (
            lambda: add_twice(rows()),
            "two queries are named 'query'. Give each its own name: .agg(..., name='...').",
        ),
        (
            lambda: rows().start().add(wp.count()),
            "Aggregate is no query. Give what .window(...).agg(...) returns.",
        ),
        (
            lambda: rows().start().add(of(wp.count(), name="other")),
            "query 'other' reads another stream than this run. Build it from the stream that the run was started on, or start a run of its own.",
        ),
        (
            lambda: rows().start().punctuate("5"),
            "the bound is '5'. Give a datetime, a date, or a whole number in the measure of 'ts' (for times: microseconds since 1970).",
        ),
        (
            lambda: rows().start().punctuate(1.5),
            "the bound is 1.5. Give a datetime, a date, or a whole number in the measure of 'ts' (for times: microseconds since 1970).",
        ),
        (
            lambda: rows().start().tick("x"),
            "now is 'x'. Give the clock in whole microseconds: time.time_ns() // 1000.",
        ),
        (
            lambda: rows().start().push(ROWS, now=0.5),
            "now is 0.5. Give the clock in whole microseconds: time.time_ns() // 1000.",
        ),
        (lambda: rows().start().remove("other"), "there is no query 'other'; there are query."),
    ],
    errors.Overflow: [
        (
            lambda: wp.stream(ROWS, time="ts").window(wp.tumbling(10)).agg(wp.sum("bytes")).run(),
            "the sum of column 'bytes' is 13835058055282163712 in some window, which does not fit int64. Cast the column to double, or use mean(), which does not overflow.",
        ),
    ],
    errors.BadState: [
        (
            lambda: rows().resume(5),
            "int is no snapshot. Give what runner.snapshot() returned, or its bytes.",
        ),
        (
            lambda: rows().resume(b"something else"),
            "these bytes are no snapshot of windowpane: they do not begin as one does.",
        ),
        (
            lambda: rows().resume(rows(delay=5).start().snapshot()),
            "the snapshot was written by another plan: punctuation of the stream was Delay(delay=5), is now Delay(delay=0). Resume with the old plan, or start anew.",
        ),
    ],
}


def twice(query):
    query.run()
    query.run()


def after_close(query):
    runner = query.start()
    runner.close()
    runner.push(ROWS)


def add_twice(query):
    query.start().add(query)


def two_queries():
    stream = wp.stream(ROWS, time="ts")
    return wp.run(
        stream.window(wp.tumbling(10)).agg(wp.count()), stream.window(wp.tumbling(5)).agg(wp.count())
    )


@pytest.mark.parametrize(
    ("kind", "wrong", "text"),
    [(kind, wrong, text) for kind, cases in CASES.items() for wrong, text in cases],
    ids=[text for cases in CASES.values() for _, text in cases],
)
def test_the_message_says_what_is_wrong_and_what_to_do(kind, wrong, text):
    with pytest.raises(kind) as raised:
        wrong()
    assert str(raised.value) == text
    assert isinstance(raised.value, errors.WindowpaneError)
