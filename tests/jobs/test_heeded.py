"""Keys of a sink that it would do nothing with are told, with the line and the remedy."""

import re

import pytest

from windowpane.jobs import BadJob, load

JOB = """\
source: {format: rate}
stream: {time: timestamp}
query: {window: tumbling(1 s), aggregates: count()}
checkpoint: state
sink:
  SINK
"""
KAFKA = "format: kafka, options: {kafka.bootstrap.servers: h, topic: t}"


def write(folder, sink, text=JOB):
    lines = re.sub(r", (?![^{]*})", "\n  ", sink)
    text = text.replace("checkpoint: state\n", "\n") if "memory" in sink else text
    (folder / "job.yaml").write_text(text.replace("SINK", lines), "utf-8")
    return load(folder / "job.yaml").queries[0].sink


UNHEEDED = [
    (
        "format: console, options: {numRows: 50}",
        "options: the sink console does nothing with it. Write rows: 50",
    ),
    ("format: console, partition_by: k", "partition_by: the sink console does nothing with it. Remove it."),
    ("format: console, url: host=db", "There are: format, rows."),
    ("format: console, path: out", "path: the sink console does nothing with it."),
    ("format: memory, table: t", "The table has the name of the query: give it one with name."),
    ("format: sqlite, partition_by: k, path: a.db", "partition_by: the sink sqlite does nothing with it."),
    ("format: sqlite, options: {timeout: 5}, path: a.db", "There are: format, path, table."),
    ("format: sqlite, url: a.db", "Write the file as path."),
    ("format: postgresql, path: a.db", "Write the connection text as url."),
    ("format: parquet, table: t, path: out", "table: the sink parquet does nothing with it. Remove it."),
    ("format: parquet, rows: 5, path: out", "rows: the sink parquet does nothing with it."),
    ("format: csv, url: out, path: out", "There are: format, path, options, partition_by."),
    (KAFKA.replace("kafka,", "kafka, path: out,"), "There are: format, options."),
    ("format: jdbc, url: 'jdbc:h2'", "Write it into options if Spark's sink knows it."),
]


@pytest.mark.parametrize(("sink", "message"), UNHEEDED, ids=[sink for sink, _ in UNHEEDED])
def test_a_key_that_a_sink_does_nothing_with_is_told_with_its_line(tmp_path, sink, message):
    """It was accepted: who wrote it saw twenty rows, or no directories, and was not told why."""
    with pytest.raises(BadJob, match=rf"job\.yaml:7: sink\..*{re.escape(message)}"):
        write(tmp_path, sink)


@pytest.mark.parametrize(
    "sink",
    [
        "format: console, rows: 5",
        "format: memory, rows: 5",
        "format: sqlite, path: a.db, table: t",
        "format: csv, path: out, options: {header: true}, partition_by: [a, b]",
        "format: delta, path: out, options: {a: b}, partition_by: a",
        KAFKA,
    ],
)
def test_what_a_sink_heeds_is_taken(tmp_path, sink):
    assert write(tmp_path, sink).format in sink


def test_queries_that_share_a_database_have_tables_by_their_names(tmp_path):
    query = "{name: NAME, window: tumbling(1 s), aggregates: count()}"
    two = f"queries: [{query.replace('NAME', 'a')}, {query.replace('NAME', 'b')}]"
    text = re.sub("query: .*", two, JOB)
    assert write(tmp_path, "format: sqlite, path: a.db", text).table == "a"
    with pytest.raises(BadJob, match=r"job\.yaml:7: sink\.table: several queries share the sink.*Remove it"):
        write(tmp_path, "format: sqlite, table: t, path: a.db", text)
