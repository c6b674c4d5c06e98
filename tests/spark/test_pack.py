"""What tasks send: batches that are neither too small for speed nor too large for Arrow."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import windowpane as wp
from tests.spark.harness import streaming
from windowpane.spark import pack
from windowpane.spark.session import SETTINGS

LONG = 1 << 20


def batch(rows, width):
    return pa.record_batch(
        {"i": pa.array(range(rows), pa.int64()), "s": pa.array(["x" * width] * rows, pa.string())}
    )


@pytest.mark.parametrize("width", [0, 10, 1000, 100_000])
def test_batches_are_gathered_and_cut_and_no_row_is_lost(monkeypatch, width):
    monkeypatch.setattr(pack, "_ROWS", 1000)
    monkeypatch.setattr(pack, "_BYTES", 200_000)
    given = [batch(rows, width) for rows in (0, 1, 300, 0, 900, 7)]
    found = list(pack.gathered(given))
    assert pa.Table.from_batches(found) == pa.Table.from_batches(given)
    assert all(each.num_rows for each in found)
    assert max(each.nbytes for each in found) <= max(2 * 200_000, width + 100)
    assert len(found) == {0: 2, 10: 2}.get(width, len(found))


def test_rows_of_a_quarter_of_a_megabyte_fit_into_a_batch():
    most = int(SETTINGS["spark.sql.execution.arrow.maxRecordsPerBatch"])
    assert most * 2**18 <= 2**31


def test_row_35_many_texts_of_a_megabyte_come_whole_in_one_micro_batch(spark, tmp_path):
    from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses

    n, found = 80, []
    (tmp_path / "in").mkdir()
    for i, times in enumerate(([9_999], [1_000] * n)):  # the second file is late
        file = tmp_path / "in" / f"{i}.parquet"
        pq.write_table(pa.table({"ts": pa.array(times, pa.int64())}), file)
        os.utime(file, (1_700_000_000 + i, 1_700_000_000 + i))
    source = streaming(spark, tmp_path / "in").withColumn("s", F.repeat(F.lit("é"), LONG // 2))
    late = wp.stream(source, time="ts").window(wp.tumbling(10)).agg(wp.count()).to_spark("late")

    def sink(batch, _):
        found.append(tuple(batch.agg(F.count("s"), F.sum(F.octet_length("s"))).first()))

    writer = late.writeStream.foreachBatch(sink).option("checkpointLocation", str(tmp_path / "checkpoint"))
    writer.trigger(availableNow=True).start().awaitTermination()
    assert found == [(0, None), (n, n * LONG)]
