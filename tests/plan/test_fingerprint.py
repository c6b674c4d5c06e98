"""What of a plan its state depends on: a restart with any other plan is refused, and says why."""

import json
from dataclasses import dataclass
from types import SimpleNamespace

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import BadState
from windowpane.plan.fingerprint import fingerprint, need_same
from windowpane.query import FOREIGN, together

ROWS = pa.table({"t": [1, 2, 3], "v": [1, 1, 1], "x": [100, 100, 100]})


def stream_of(source=None, **options):
    how = {"schema": ROWS.schema} if source is None else {}
    return wp.stream(source, time="t", delay=10, **how, **options)


def stored(*queries):
    """The fingerprint as it comes back from a checkpoint."""
    return json.loads(json.dumps(fingerprint(together(queries)[0])))


def two(stream):
    window = stream.window(wp.tumbling(5))
    return window.agg(s=wp.sum("v"), name="q1"), window.agg(s=wp.sum("x"), name="q2")


def test_queries_in_another_order_are_another_plan():
    first, second = two(stream_of())
    need_same(stored(first, second), together([first, second])[0])
    with pytest.raises(BadState, match=r"in the order q1, q2, and are now in the order q2, q1"):
        need_same(stored(first, second), together([second, first])[0])


def test_a_run_does_not_go_on_with_its_queries_in_another_order():
    """It answered each query with the other's state."""
    first, second = two(stream_of())
    runner = wp.start(first, second)
    runner.push(ROWS)
    snapshot = runner.snapshot().to_bytes()
    with pytest.raises(BadState, match="in the order"):
        wp.resume(snapshot, second, first)
    tables = wp.resume(snapshot, first, second).close().tables
    assert {name: table["s"].to_pylist() for name, table in tables.items()} == {"q1": [3], "q2": [300]}


@dataclass(frozen=True)
class Scaled(wp.UserAggregate):
    """The sum of what a function makes of a column."""

    scale: object
    columns: tuple = ("v",)
    algebra: object = wp.Algebra("distributive")
    type: object = pa.int64()

    def lift(self, v):
        return (self.scale(v),)

    def combine(self, a, b):
        return (a[0] + b[0],)

    def lower(self, partial):
        return partial[0]

    def identity(self):
        return (0,)


def test_a_users_aggregate_that_holds_a_function_is_the_same_in_another_worker():
    """The plan goes to each worker as bytes, where the function has another address."""
    from pyspark import cloudpickle

    def query(function):
        return stream_of().window(wp.tumbling(5)).agg(s=Scaled(function))

    one = query(lambda v: v * 10)
    plan = together([one])[0]
    there = cloudpickle.loads(cloudpickle.dumps(plan))
    need_same(stored(one), there)
    with pytest.raises(BadState, match="aggregates of query 'query' was"):
        need_same(stored(query(lambda v: v * 11)), plan)


class Frame:
    """A frame of another runtime, as far as a stream asks it."""

    def where(self, _):
        return self


def filtered(monkeypatch, *conditions, **computed):
    """A query over a frame with conditions and a computed column."""
    runtime = SimpleNamespace(schema_of=lambda _: ROWS.schema, selected=lambda *_: (Frame(), ROWS.schema))
    monkeypatch.setattr(Frame, "__module__", "pyspark.sql")
    monkeypatch.setitem(FOREIGN, "pyspark", lambda: runtime)
    stream = wp.stream(Frame(), time="t", delay=10)
    stream = stream.select("t", "v", **computed) if computed else stream
    for condition in conditions:
        stream = stream.where(condition)
    return stream.window(wp.tumbling(5)).agg(s=wp.sum("x"))


class Column:
    """As Spark shows it, with a number that differs from run to run."""

    def __init__(self, number):
        self._number = number

    def __str__(self):
        return f"Column<'(v#{self._number}L > 5)'>"


@pytest.mark.parametrize(
    ("then", "now", "told"),
    [
        ((("v > 5",), {}), (("v > 6",), {}), "where of the stream was v > 5, is now v > 6"),
        ((("v > 5",), {}), ((), {}), "where of the stream was v > 5, is now absent"),
        ((("v > 5", "x > 1"), {}), (("v > 5",), {}), "was v > 5 and x > 1, is now v > 5"),
        (((), {"x": "v * 2"}), ((), {"x": "v * 3"}), "text of column 'x' of the stream was v [*] 2"),
        (
            (("y > 1",), {"y": "v"}),
            (("y > 1",), {"y": "-v"}),
            "was y > 1 with y = v, is now y > 1 with y = -v",
        ),
        (((Column(3),), {}), (("v > 5",), {}), r"was Column<'\(v > 5\)'>, is now v > 5"),
    ],
)
def test_a_changed_condition_or_computed_column_is_another_plan(monkeypatch, then, now, told):
    before, after = (filtered(monkeypatch, *conditions, **computed) for conditions, computed in (then, now))
    with pytest.raises(BadState, match=told):
        need_same(stored(before), together([after])[0])
    need_same(stored(before), together([filtered(monkeypatch, *then[0], **then[1])])[0])


def test_what_does_not_change_an_answer_may_change(monkeypatch):
    """A computed column that no query reads, and the numbers that Spark gives to columns."""
    before = filtered(monkeypatch, Column(3), x="v", unread="v * 2")
    after = filtered(monkeypatch, Column(4), x="v", unread="v * 3")
    need_same(stored(before), together([after])[0])


def test_the_texts_of_a_jobs_source_are_part_of_its_plan(tmp_path):
    from windowpane.jobs import load
    from windowpane.jobs.build import queries

    (tmp_path / "in").mkdir()
    job = """\
source: {{format: parquet, path: in, select: ["t", "{select} as x", "inline(a)"], where: "{where}"}}
stream: {{time: t}}
query: {{window: tumbling(5), aggregates: sum(x)}}
sink: {{format: console}}
"""

    def query(select, where):
        (tmp_path / "job.yaml").write_text(job.format(select=select, where=where), "utf-8")
        return queries(load(tmp_path / "job.yaml"), schema=ROWS.schema)[0]

    first = query("v * 2", "v > 1")
    need_same(stored(first), query("v * 2", "v > 1").plan)
    with pytest.raises(BadState, match=r"text of column 'x' of the stream was v [*] 2, is now v [*] 3"):
        need_same(stored(first), query("v * 3", "v > 1").plan)
    with pytest.raises(
        BadState, match=r"was select inline\(a\) and v > 1, is now select inline\(a\) and v > 2"
    ):
        need_same(stored(first), query("v * 2", "v > 2").plan)


def selecting(folder, select):
    """The query of a job whose source has this in its select."""
    from windowpane.jobs import load
    from windowpane.jobs.build import queries

    (folder / "in").mkdir(exist_ok=True)
    written = json.dumps(["t", "v", select])
    text = f"""\
source: {{format: parquet, path: in, select: {written}}}
stream: {{time: t}}
query: {{window: tumbling(5), aggregates: sum(x)}}
sink: {{format: console}}
"""
    (folder / "job.yaml").write_text(text, "utf-8")
    return queries(load(folder / "job.yaml"), schema=ROWS.schema)[0]


@pytest.mark.parametrize(
    ("then", "now"),
    [
        ("bid.x", "ask.x"),
        ("`bid`.x", "`ask`.x"),
        ("`bid`.`x`", "`ask`.`x`"),
        ("bid x", "ask x"),
        ("bid.price x", "ask.price x"),
        ("`bid price` x", "`ask price` x"),
        ("`bid price` as x", "`ask price` as x"),
        ("bid `x`", "ask `x`"),
        ("bid as `x`", "ask as `x`"),
        ("bid.*", "ask.*"),
        ("bid.x", "x"),
    ],
)
def test_a_jobs_column_from_another_place_is_another_plan(tmp_path, then, now):
    """The names and types of the columns stay, so that only the texts tell: state of both was mixed."""
    before = stored(selecting(tmp_path, then))
    need_same(before, selecting(tmp_path, then).plan)
    with pytest.raises(BadState, match="of the stream was"):
        need_same(before, selecting(tmp_path, now).plan)


def test_a_jobs_column_by_its_own_name_is_no_text_of_its_plan(tmp_path):
    """Checkpoints of before go on, and the form of a name may change."""
    before = stored(selecting(tmp_path, "x"))
    for same in ("`x`", " x ", "*"):
        need_same(before, selecting(tmp_path, same).plan)
    assert "where" not in stored(selecting(tmp_path, "`x.y z`"))["stream"]
