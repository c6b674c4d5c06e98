"""Spark's own windows, and digests of answers, to compare windowpane with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses

_NAME = "checked"


def built_in(source: DataFrame, delay: str, windows: Iterable[tuple[int, int]]) -> list[DataFrame]:
    """Sum and count of `value` by `key` over windows of (size, slide) seconds of `ts`, a frame for each."""
    frames = []
    for size, slide in windows:
        window = F.window("ts", f"{size} seconds", f"{slide} seconds").alias("window")
        grouped = source.withWatermark("ts", delay).groupBy("key", window)
        frames.append(grouped.agg(F.sum("value").alias("total"), F.count("*").alias("n")))
    return frames


def checked(answers: DataFrame) -> DataFrame:
    """Answers (key, window, total, n) that are counted and digested as they pass, in any order."""
    return answers.observe(_NAME, *_digested())


def digest_now(answers: DataFrame) -> dict[str, int]:
    """The same of answers that are all there."""
    (row,) = answers.agg(*_digested()).collect()
    return {name: value or 0 for name, value in row.asDict().items()}


def _digested() -> list[Column]:
    row = F.xxhash64("key", "window.start", "window.end", "total", "n")
    counted = F.count(F.lit(1)).alias("answers")
    return [counted, F.bit_xor(row).alias("digest"), F.sum("n").alias("tuples")]


def digest_of(progress: Sequence[Any]) -> dict[str, int]:
    """What `checked` saw in all micro-batches of a query."""
    total = {"answers": 0, "digest": 0, "tuples": 0}
    for step in progress:
        seen = json.loads(step.json)["observedMetrics"].get(_NAME) or {}
        total["answers"] += seen.get("answers") or 0
        total["tuples"] += seen.get("tuples") or 0
        total["digest"] ^= seen.get("digest") or 0
    return total
