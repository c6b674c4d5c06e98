"""Which columns a job reads, and files that lack one: as far as no Spark is needed."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from windowpane.errors import BadQuery
from windowpane.jobs import load
from windowpane.jobs.columns import columns_read, lacking, paths_read, tree_of
from windowpane.jobs.footers import Footers
from windowpane.jobs.job import Source

SCHEMA = pa.schema(
    [
        *((name, pa.int64()) for name in ("ts", "k", "v", "w", "x", "m", "s", "t", "i", "p")),
        ("box", pa.struct([("a", pa.int64()), ("b", pa.struct([("c", pa.int64())])), ("k", pa.int64())])),
        ("list", pa.list_(pa.struct([("z", pa.int64())]))),
        ("it's", pa.int64()),
    ]
)


@pytest.mark.parametrize(
    ("stream", "query", "read"),
    [
        ("keys: k", "window: tumbling(1), aggregates: count()", {"ts", "k"}),
        ("keys: k", "window: tumbling(1), aggregates: [sum(v), 'weighted_mean(w, x)'], keys: []", set("vwx")),
        ("ties: t, required: v, ids: [i]", "window: rows(5).per(p), aggregates: count()", set("tvip")),
        ("punctuation: external(m)", "window: tumbling(1), aggregates: count()", {"m"}),
        ("punctuation: 'melded(s, delay(1))'", "window: delimited(start=m), aggregates: count()", set("sm")),
    ],
)
def test_the_columns_that_queries_read(tmp_path, stream, query, read):
    (tmp_path / "in").mkdir()
    text = f"source: {{format: parquet, path: in}}\nstream: {{time: ts, {stream}}}\nquery: {{{query}}}\n"
    (tmp_path / "job.yaml").write_text(text + "sink: {format: console}\n", "utf-8")
    assert set(columns_read(load(tmp_path / "job.yaml"))) == {"ts", *read}


@pytest.mark.parametrize(
    ("select", "where", "read"),
    [
        ((), None, {("ts",), ("v",)}),
        ((), "upper(k) = 'w' and x > \"s\"", {("ts",), ("v",), ("k",), ("x",)}),
        (("*",), "W > 1", {("ts",), ("v",), ("w",)}),
        (("ts", "x * 2 as v"), None, {("ts",), ("x",)}),
        (("ts", "box.a as v"), None, {("ts",), ("box",), ("box", "a")}),
        (("ts", "box.`b`.c + 1 as v"), None, {("ts",), ("box",), ("box", "b"), ("box", "b", "c")}),
        (("x as ts", "box.*"), None, {("x",), ("box",)}),
        (("ts", "list[0].z as v"), None, {("ts",), ("list",)}),
        (("* except (w)",), None, {("ts",), ("v",)}),
        (("ts", "x as v"), "v > 0 and `it's` = 'k'", {("ts",), ("x",), ("it's",)}),
        (("ts", "box['b'] as v"), None, {("ts",), *(("box", *p) for p in ((), "a", "b", "bc", "k"))}),
    ],
)
def test_the_columns_of_the_source_that_are_behind_them(select, where, read):
    source = Source("parquet", "in", select=select, where=where)
    assert set(paths_read(source, tree_of(SCHEMA), ("ts", "v"))) == read


def test_a_struct_that_is_read_whole_counts_with_its_fields():
    found = paths_read(Source("parquet", "in"), tree_of(SCHEMA), ("box",))
    assert found == (("box",), ("box", "a"), ("box", "b"), ("box", "b", "c"), ("box", "k"))
    assert lacking(found, {"BOX": {"a": {}, "B": {"c": {}}, "k": {}}}) is None
    assert lacking(found, {"box": {"a": {}, "b": {}, "k": {}}}) == ("box", "b", "c")


def looked_at(path, form="parquet", **options):
    """What is wrong with the files of a source of which k is read; None if nothing is."""
    files = Footers.of(Source(form, str(path), options=options, malformed="fail"), (("k",),))
    try:
        files.check()
    except BadQuery as error:
        return str(error)
    return None


def written(file, *names):
    file.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({name: [1] for name in names})
    (pq if file.suffix == ".parquet" else orc).write_table(table, file)
    return file


@pytest.mark.parametrize("form", ["parquet", "orc"])
def test_a_file_without_the_column_is_named_with_the_remedy(tmp_path, form):
    written(tmp_path / f"a.{form}", "K", "v")
    assert looked_at(tmp_path, form) is None
    bad = written(tmp_path / f"b.{form}", "v")
    told = looked_at(tmp_path, form)
    assert f"the file '{bad}' has no column 'k', which a query reads" in told
    assert "malformed: keep" in told
    assert looked_at(f"file://{tmp_path}", form) == told


@pytest.mark.parametrize(
    ("name", "options", "read"),
    [
        ("_a.parquet", {}, False),
        (".a.parquet", {}, False),
        ("a.parquet._COPYING_", {}, False),
        ("_temporary/a.parquet", {}, False),
        ("sub/a.parquet", {}, False),  # which Spark does not go into
        ("sub/a.parquet", {"recursiveFileLookup": "true"}, True),
        ("k=1/a.parquet", {}, False),
        ("z=1/k=1/a.parquet", {}, False),
        ("z=1/a.parquet", {}, True),
        ("z=1/sub/a.parquet", {}, True),
        ("k=1/a.parquet", {"recursiveFileLookup": "true"}, True),  # with which directories name no columns
        ("a.parquet", {"pathGlobFilter": "*.{pq,orc}"}, False),
        ("a.parquet", {"PathGlobFilter": "[^b]*.{pq,parquet}"}, True),
        ("a.parquet", {"modifiedAfter": "2050-07-01T08:30:00"}, False),
    ],
)
def test_files_that_spark_does_not_read_do_not_matter(tmp_path, name, options, read):
    file = written(tmp_path / "in" / name.removesuffix("._COPYING_"), "v")
    file.rename(tmp_path / "in" / name)
    source = Source("parquet", str(tmp_path / "in"), options=options, malformed="fail")
    if (files := Footers.of(source, (("k",),))) is None:
        assert "modifiedAfter" in options
    elif read:
        with pytest.raises(BadQuery):
            files.check()
    else:
        files.check()


def test_a_path_may_be_a_pattern(tmp_path):
    written(tmp_path / "one" / "a.parquet", "v")
    written(tmp_path / "two" / "k=3" / "a.parquet", "v")
    assert looked_at(tmp_path / "t*") is None
    assert "a.parquet" in looked_at(tmp_path / "*")
    assert "a.parquet" in looked_at(tmp_path / "{one,two}" / "*.parquet")
    assert looked_at(tmp_path / "two" / "k=3" / "*.parquet", basePath=str(tmp_path / "two")) is None
    assert "a.parquet" in looked_at(tmp_path / "[^t]*")
    assert looked_at(tmp_path / "[^o]*") is None


def test_directories_that_are_linked_or_begin_with_a_line_are_looked_into(tmp_path):
    written(tmp_path / "other" / "a.parquet", "v")
    (tmp_path / "_in").mkdir()
    (tmp_path / "_in" / "z=1").symlink_to(tmp_path / "other")
    assert "z=1" in looked_at(tmp_path / "_in")


def test_columns_that_hive_named_are_taken_by_their_places(tmp_path):
    written(tmp_path / "a.orc", "_col0", "_col1")
    assert looked_at(tmp_path, "orc") is None


def test_each_footer_is_read_once_and_what_is_no_file_of_that_kind_is_left_to_spark(tmp_path, monkeypatch):
    written(tmp_path / "a.parquet", "k")
    (tmp_path / "garbage.parquet").write_text("no")
    read, schema = [], pq.read_schema
    monkeypatch.setattr(pq, "read_schema", lambda file: (read.append(file), schema(file))[1])
    files = Footers.of(Source("parquet", str(tmp_path), malformed="fail"), (("k",),))
    files.check()
    files.check()
    assert read.count(str(tmp_path / "a.parquet")) == 1


@pytest.mark.parametrize(
    ("path", "form", "malformed"),
    [("s3://bucket/in", "parquet", "fail"), ("in", "parquet", "keep"), ("in", "json", "reject")],
)
def test_there_may_be_nothing_to_look_at(path, form, malformed):
    assert Footers.of(Source(form, path, malformed=malformed), (("k",),)) is None
