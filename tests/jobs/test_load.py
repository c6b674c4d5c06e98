"""Job files: what they may say, and the line and remedy of what they may not."""

import re

import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.jobs import BadJob, load
from windowpane.jobs.build import queries
from windowpane.jobs.job import Trigger

GOOD = """\
source:
  format: parquet
  path: ticks
stream:
  time: ts
  keys: [symbol]
  delay: 2 s
query:
  window: sliding(10 min, 1 s)
  aggregates:
    - count()
    - vwap = weighted_mean(price, volume)
sink:
  format: parquet
  path: out
trigger: available_now
checkpoint: state
"""
TOML = """\
checkpoint = "state"
trigger = "available_now"

[source]
format = "parquet"
path = "ticks"

[stream]
time = "ts"
keys = ["symbol"]
delay = "2 s"

[[queries]]
name = "query"
window = "sliding(10 min, 1 s)"
aggregates = [
  "count()",
  "vwap = weighted_mean(price, volume)",
]

[queries.sink]
format = "parquet"
path = "out"
"""
SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("symbol", pa.string()),
        ("price", pa.float64()),
        ("volume", pa.int64()),
    ]
)


@pytest.fixture
def job(tmp_path):
    (tmp_path / "ticks").mkdir()

    def write(text=GOOD, old="", new="", name="job.yaml"):
        assert old in text
        file = tmp_path / name
        file.write_text(text.replace(old, new, 1), "utf-8")
        return file

    return write


def built(file):
    return queries(load(file), schema=SCHEMA)


def complaint(file, build=False):
    with pytest.raises(BadJob) as raised:
        built(file) if build else load(file)
    text = str(raised.value)
    assert text.startswith(f"{file}:")
    found = re.match(r"(\d+): (.*)", text.removeprefix(f"{file}:"), re.DOTALL)
    return (int(found[1]), found[2]) if found else (0, text.removeprefix(f"{file}: "))


def test_a_job_is_what_its_file_says(job, tmp_path):
    found = load(job())
    assert found.source.path == str(tmp_path / "ticks")
    assert found.stream == {"time": "ts", "keys": ("symbol",), "delay": 2_000_000}
    assert found.queries[0].windows == (wp.sliding("10 min", "1 s"),)
    assert found.queries[0].aggregates == (wp.count(), wp.weighted_mean("price", "volume").named("vwap"))
    assert (found.queries[0].sink.format, found.queries[0].sink.path) == ("parquet", str(tmp_path / "out"))
    assert found.trigger == Trigger("available_now")
    assert found.checkpoint == str(tmp_path / "state")


def test_toml_says_the_same(job):
    yaml_job, toml_job = load(job()), load(job(TOML, name="job.toml"))
    assert toml_job == yaml_job


def test_its_queries_are_those_of_the_api(job):
    (query,) = queries(load(job()), schema=SCHEMA)
    stream = wp.stream(schema=SCHEMA, time="ts", keys="symbol", delay="2 s", required="symbol")
    by_hand = stream.window(wp.sliding("10 min", "1 s")).agg(
        wp.count(), vwap=wp.weighted_mean("price", "volume")
    )
    assert query.plan == by_hand.plan


@pytest.mark.parametrize(
    ("window", "same"),
    [
        ("{sliding: [10 min, 1 s]}", wp.sliding("10 min", "1 s")),
        ("{sliding: {size: 10 min, slide: 1 s}}", wp.sliding("10 min", "1 s")),
        ("{session: 30 s}", wp.session("30 s")),
        ("{tumbling: {size: 10, on: ts}}", wp.tumbling(10, on="ts")),
        ("{rows: {size: 100, slide: 10}, per: symbol}", wp.rows(100, slide=10).per("symbol")),
        ("{rows: 100, per: [symbol, price]}", wp.rows(100).per("symbol", "price")),
        ("['tumbling(1 s)', {tumbling: 1 s}]", wp.tumbling("1 s")),
    ],
)
def test_a_window_may_be_a_mapping(job, window, same):
    found = load(job(old="sliding(10 min, 1 s)", new=window)).queries[0].windows
    assert set(found) == {same}


@pytest.mark.parametrize(
    "aggregates",
    [
        "['count()', {weighted_mean: [price, volume], as: vwap}]",
        "{count: count(), vwap: 'weighted_mean(price, volume)'}",
        "[{count: }, {weighted_mean: {value: price, weight: volume}, as: vwap}]",
    ],
)
def test_aggregates_may_be_mappings(job, aggregates):
    text = re.sub(r"aggregates:\n.*\n.*\n", f"aggregates: {aggregates}\n", GOOD)
    names = [aggregate.name for aggregate in load(job(text)).queries[0].aggregates]
    assert names == ["count", "vwap"]


@pytest.mark.parametrize(
    ("text", "trigger"),
    [
        ("once", Trigger("once")),
        ("{processing_time: 2 s}", Trigger("processing_time", 2_000_000)),
        ("processing_time 2 s", Trigger("processing_time", 2_000_000)),
        ('processing_time "2 s"', Trigger("processing_time", 2_000_000)),
        ("processing_time(500 ms)", Trigger("processing_time", 500_000)),
    ],
)
def test_triggers(job, text, trigger):
    assert load(job(old="available_now", new=text)).trigger == trigger


def test_queries_that_share_a_sink_get_a_directory_each(job, tmp_path):
    two = """queries:
  - {name: a, window: tumbling(1 s), aggregates: count()}
  - {window: tumbling(2 s), aggregates: count()}
sink:"""
    text = re.sub(r"query:\n(  .*\n)+sink:", two, GOOD)
    found = load(job(text)).queries
    assert [(q.name, q.sink.path) for q in found] == [
        ("a", str(tmp_path / "out" / "a")),
        ("query_2", str(tmp_path / "out" / "query_2")),
    ]


WRONG = [
    ("source:\n", "sorce:\n", 1, "sorce: there is no such key here. Did you mean 'source'?"),
    ("  path: ticks\n", "  pth: ticks\n", 3, "source.pth: there is no such key here. Did you mean 'path'?"),
    ("path: ticks", "path: ticcs", 3, "Make the directory, or correct the path."),
    ("path: ticks", "path: job.yaml", 3, "is a file. Give the directory that holds it"),
    ("path: ticks", "path: 5", 3, "source.path: this must be a text, not 5. Put it in quotes if it is one."),
    ("path: ticks", "path: ''", 3, "source.path: this text is empty."),
    ("format: parquet", "format: csv", 1, "source: 'schema' is missing, which csv files need."),
    ("format: parquet", "format: socket", 1, "source: the source socket needs the option 'host'."),
    ("format: parquet", "options: [1]", 1, "source: 'format' is missing. Write: source: {format: parquet"),
    ("  path: ticks", "  path: ticks\n  options: 5", 4, "this must be a mapping of settings, not 5."),
    ("  time: ts\n", "", 4, "stream: 'time' is missing. Write: stream: {time: ts, "),
    ("delay: 2 s", "delay: soon", 7, "stream.delay: 'soon' is no duration."),
    ("delay: 2 s", "delay: 2.5", 7, "stream.delay: this must be a duration such as 2 s, not 2.5."),
    ("delay: 2 s", "delay: 2 s\n  punctuation: ordered()", 8, "stream.punctuation: delay is given too."),
    ("delay: 2 s", "punctuation: order()", 7, "there is no policy 'order'. Did you mean 'ordered'?"),
    ("keys: [symbol]", "keys: [5]", 6, "stream.keys[0]: this must be a text, not 5."),
    ("window: sliding(10 min, 1 s)", "window: slidin(1 s)", 9, "query.window: there is no window 'slidin'."),
    ("window: sliding(10 min, 1 s)", "windw: x", 9, "query.windw: there is no such key here. Did you mean"),
    ("window: sliding(10 min, 1 s)", "emit: final", 8, "query: 'window' is missing."),
    ("window: sliding(10 min, 1 s)", "window: [sliding(1 s, 1 s)]", 9, "YAML splits at each comma"),
    (
        "- count()",
        "- coutn()",
        11,
        "query.aggregates[0]: there is no aggregate 'coutn'. Did you mean 'count'?",
    ),
    ("(price, volume)", "(price)", 12, "missing a required argument: 'weight'"),
    ("(price, volume)", "(price, volume", 12, "has brackets that do not match."),
    ("trigger: available_now", "trigger: avail_now", 16, "Did you mean 'available_now'?"),
    ("trigger: available_now", "trigger: {every: 2 s}", 16, "trigger.every: there is no such key here."),
    ("trigger: available_now", "trigger: batch", 17, "a batch job keeps no checkpoint."),
    ("checkpoint: state\n", "", 1, "'checkpoint' is missing, but the sink parquet outlives the job"),
    ("checkpoint: state", "checkpoint: [a]", 17, "checkpoint: this must be a text, not a list."),
    ("format: parquet\n  path: out", "format: sqlite\n  path: no/out.db", 15, "Make it first."),
    ("format: parquet\n  path: out", "format: sqlite", 13, "sink: 'path' is missing."),
    ("format: parquet\n  path: out", "format: kafka", 13, "needs the option 'kafka.bootstrap.servers'."),
    ("  path: out", "  path: out\n  rows: 0", 16, "sink.rows: this must be a whole number above 0, not 0."),
    ("checkpoint: state", "checkpoint: state\ncheckpoint: other", 18, "this key is there twice."),
    ("  path: ticks", "  path: ticks: 5", 3, "this is no YAML: mapping values are not allowed here."),
    ("  path: ticks", "\tpath: ticks", 3, "this is no YAML: "),
    ("[symbol]", "[symbol", 7, "this is no YAML: "),
    ("trigger: available_now", "spark: {a: [1]}", 16, "a setting is a text, a number or true or false"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), WRONG, ids=[w[3] for w in WRONG])
def test_a_wrong_file_is_told_the_line_and_the_remedy(job, old, new, line, message):
    found = complaint(job(old=old, new=new))
    assert message in found[1]
    assert found[0] == line


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("time: ts", "time: tz", 5, "has no column 'tz'; it has ts, symbol, price, volume."),
        ("time: ts", "time: symbol", 5, "column 'symbol' has type string"),
        ("keys: [symbol]", "keys: [symbol, simbol]", 6, "Did you mean 'symbol'?"),
        ("(price, volume)", "(prise, volume)", 12, "Did you mean 'price'?"),
        ("count()", "sum(symbol)", 11, "column 'symbol' has type string"),
        ("vwap =", "count =", 11, "two columns 'count'"),
    ],
)
def test_an_error_of_the_library_is_told_with_its_line(job, old, new, line, message):
    found = complaint(job(old=old, new=new), build=True)
    assert message in found[1]
    assert found[0] == line


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ('path = "ticks"', 'pth = "ticks"', 6, "source.pth: there is no such key here."),
        ('delay = "2 s"', 'delay = "soon"', 11, "'soon' is no duration."),
        ("sliding", "slding", 15, "there is no window 'slding'."),
        ("(price, volume)", "(price)", 16, "missing a required argument: 'weight'"),
        ('format = "parquet"\npath = "out"', 'format = "parquet"', 21, "'path' is missing."),
        ('trigger = "available_now"', "trigger = available_now", 2, "this is no TOML: "),
    ],
)
def test_a_wrong_toml_file_is_told_the_line(job, old, new, line, message):
    found = complaint(job(TOML, old, new, "job.toml"))
    assert message in found[1]
    assert found[0] == line


def test_a_file_that_is_not_there_or_no_job_is_named(tmp_path):
    assert complaint(tmp_path / "none.yaml") == (0, "there is no such file. Give the path of a job file.")
    assert "ends in .yaml, .yml or .toml" in complaint(tmp_path / "job.txt")[1]
    (tmp_path / "a.yaml").write_text("")
    assert complaint(tmp_path / "a.yaml") == (1, "the file is empty. Begin with `source:`.")
    (tmp_path / "b.yaml").write_text("- a\n")
    assert complaint(tmp_path / "b.yaml") == (1, "a job file is a mapping. Begin with `source:`.")
    (tmp_path / "c.yaml").write_text("&a [*a]\n")
    assert complaint(tmp_path / "c.yaml")[0] == 1
    (tmp_path / "d.yaml").write_bytes(b"\xff\xfe\xff")
    assert "cannot be read" in complaint(tmp_path / "d.yaml")[1]


def test_postgresql_without_a_driver_says_what_to_install(job, monkeypatch):
    monkeypatch.setattr("windowpane.jobs.ends.find_spec", lambda _: None)
    file = job(old="format: parquet\n  path: out", new="format: postgresql\n  url: host=db")
    line, message = complaint(file)
    assert (line, "pip install 'psycopg[binary]'" in message) == (14, True)


def test_a_source_without_an_end_is_no_batch_job(job):
    file = job(
        GOOD.replace("checkpoint: state\n", "").replace("available_now", "batch"),
        "format: parquet\n  path: ticks",
        "format: rate",
    )
    assert "never ends" in complaint(file)[1]


@pytest.mark.parametrize(
    ("trigger", "remedy"),
    [("available_now", "remove it"), ("drain", "use trigger: batch, which closes every")],
)
def test_a_sink_in_memory_cannot_go_on_from_a_checkpoint(job, trigger, remedy):
    text = GOOD.replace("format: parquet\n  path: out", "format: memory").replace("available_now", trigger)
    line, told = complaint(job(text))
    assert line == 16
    assert told.startswith("checkpoint: the sink memory forgets its answers when the job ends")
    assert remedy in told


def test_a_drain_needs_a_checkpoint_that_it_can_put_a_file_into(tmp_path):
    text = """\
source: {format: kafka, options: {kafka.bootstrap.servers: h}, schema: ts timestamp}
stream: {time: ts}
query: {window: tumbling(1 s), aggregates: count()}
sink: {format: console}
checkpoint: s3://bucket/state
"""
    (tmp_path / "job.yaml").write_text(text, "utf-8")
    job = load(tmp_path / "job.yaml")
    assert job.control(job.queries[0]) is None
    (tmp_path / "job.yaml").write_text(text + "trigger: drain\n", "utf-8")
    with pytest.raises(
        BadJob, match=r"job\.yaml:5: checkpoint: trigger: drain needs a checkpoint on a local"
    ):
        load(tmp_path / "job.yaml")


def test_answers_do_not_fit_into_text_files(tmp_path):
    (tmp_path / "in").mkdir()
    text = """\
source: {format: text, path: in, schema: value string, select: "current_timestamp() as ts"}
stream: {time: ts}
query: {window: tumbling(1 s), aggregates: count()}
sink: {format: text, path: out}
"""
    (tmp_path / "job.yaml").write_text(text, "utf-8")
    with pytest.raises(BadJob, match=r"job\.yaml:4: sink\.format: a text file holds one column"):
        load(tmp_path / "job.yaml")


MEMORY = """\
source: {{format: rate}}
stream: {{time: timestamp, keys: k, delay: 2 s}}
query: {{window: "{window}", aggregates: count()}}
sink: {{format: console}}
memory: {memory}
"""


@pytest.mark.parametrize(("written", "found"), [("64 MB", 64_000_000), ("1 KiB", 1024), ("70000", 70_000)])
def test_the_memory_of_a_job_is_a_size(tmp_path, written, found):
    (tmp_path / "job.yaml").write_text(MEMORY.format(window="tumbling(1 s)", memory=written), "utf-8")
    assert load(tmp_path / "job.yaml").memory == found


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("lots", "memory: 'lots' is no size. Write '64 MB'"),
        ("true", "memory: this must be a size such as 64 MB, not true"),
        ("0", "memory: 0 is no size"),
        ("1 MB\ntrigger: batch", "memory: a batch job takes"),
    ],
)
def test_a_memory_that_is_none_is_told_with_its_line(tmp_path, written, told):
    text = MEMORY.format(window="tumbling(1 s)", memory=written)
    if "batch" in written:
        (tmp_path / "in").mkdir()
        text = text.replace("format: rate", "format: parquet, path: in")
    (tmp_path / "job.yaml").write_text(text, "utf-8")
    with pytest.raises(BadJob, match=rf"job\.yaml:5: {told}"):
        load(tmp_path / "job.yaml")


@pytest.mark.parametrize(("window", "taken"), [("tumbling(1 s)", True), ("session(1 s)", False)])
def test_a_job_runs_its_queries_within_its_memory(tmp_path, monkeypatch, window, taken):
    """What Spark is asked for; windows that cannot be kept in blocks are told by their line."""
    from windowpane.jobs import build
    from windowpane.query import RUNTIMES
    from windowpane.spark.parts import one_part

    schema = pa.schema([("timestamp", pa.timestamp("us", "UTC")), ("k", pa.string())])
    asked = []

    def to_spark(query, _what, **options):
        one_part(query.plan)
        asked.append(options)

    (tmp_path / "job.yaml").write_text(MEMORY.format(window=window, memory="64 MB"), "utf-8")
    job = load(tmp_path / "job.yaml")
    monkeypatch.setitem(RUNTIMES, "to_spark", to_spark)
    monkeypatch.setattr(build, "observed_input", lambda *_: None)
    made = build.queries(job, schema=schema)
    monkeypatch.setattr(build, "queries", lambda *_: made)
    monkeypatch.setattr("windowpane.query.query.need_spark", lambda _: None)
    if taken:
        build.answers(job, None)
        assert asked == [{"control": None, "memory": 64_000_000}]
    else:
        with pytest.raises(BadJob, match=r"job\.yaml:3: .*memory="):
            build.answers(job, None)
