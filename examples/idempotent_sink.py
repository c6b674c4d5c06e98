"""Sinks that may be given a micro-batch twice, as a restart does: files by a rename, a table by an upsert."""

import os
import sqlite3
import sys
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from pyspark.sql import SparkSession

import windowpane as wp
from windowpane.spark import SETTINGS

os.environ["PYSPARK_PYTHON"] = sys.executable
times = pa.array([second * 1_000_000 for second in range(60)], pa.timestamp("us", "UTC"))
parquet.write_to_dataset(pa.table({"ts": times, "key": ["a", "b"] * 30, "value": range(60)}), "in")
settings = {**SETTINGS, "spark.sql.shuffle.partitions": "1"}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
rows = spark.readStream.schema(spark.read.parquet("in").schema).parquet("in")
sums = wp.stream(rows, time="ts", keys="key").window(wp.tumbling("10 s")).agg(total=wp.sum("value"))


def write(answers, number):
    answers.persist()  # a second look must not run the query again
    staged, target = f"staging/batch={number}", Path(f"out/batch={number}")
    answers.write.mode("overwrite").parquet(staged)
    _ = target.exists() or os.renames(staged, target)  # readers see a whole micro-batch, or nothing of it
    found = [tuple(row) for row in answers.selectExpr("key", "string(window.end)", "total").collect()]
    with sqlite3.connect("out.db") as table:  # one transaction; key and window say which row to replace
        table.execute("CREATE TABLE IF NOT EXISTS sums (key, until, total, PRIMARY KEY (key, until))")
        table.executemany("INSERT OR REPLACE INTO sums VALUES (?, ?, ?)", found)


for checkpoint in ("first", "second"):  # as if the first were lost: all comes again, and nothing changes
    started = sums.to_spark().writeStream.foreachBatch(write).option("checkpointLocation", checkpoint)
    started.trigger(availableNow=True).start().awaitTermination()
    there = sqlite3.connect("out.db").execute("SELECT count(*) FROM sums").fetchone()
    print(spark.read.parquet("out").count(), "answers in files,", there[0], "in the table")
