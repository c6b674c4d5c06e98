"""Stop and go on from the checkpoint: nothing lost, nothing doubled, and no other plan accepted."""

import shutil

import pytest

import windowpane as wp
from tests.spark.harness import build, events, local, run, streaming, write_files

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]

WINDOWS = {
    "sliding": (wp.sliding("10 s", "3 s"), (wp.count(), wp.median("x"))),
    "session": (wp.session("300 ms"), (wp.sum("v"), wp.first("k"))),
    "rows": (wp.rows(30, 10), (wp.collect("v"),)),
}


@pytest.mark.parametrize("case", WINDOWS, ids=str)
def test_a_restart_in_the_middle_changes_no_answer(spark, tmp_path, case):
    window, aggregates = WINDOWS[case]
    parts = write_files(tmp_path / "all", events())
    seen = []
    (tmp_path / "in").mkdir()
    for new in ((0, 1), (2, 3)):
        for i in new:
            shutil.copy2(tmp_path / "all" / f"{i:02d}.parquet", tmp_path / "in")
        frame = build(streaming(spark, tmp_path / "in"), window, aggregates).to_spark(buckets=2)
        seen += run(frame, tmp_path / "checkpoint")
    assert seen == local(parts, window, aggregates)


def test_a_restart_with_another_window_is_refused_and_says_what_changed(spark, tmp_path):
    from pyspark.errors import StreamingQueryException

    write_files(tmp_path / "in", events(), files=2)
    aggregates = (wp.count(),)
    frame = build(streaming(spark, tmp_path / "in"), wp.tumbling("10 s"), aggregates).to_spark(buckets=2)
    run(frame, tmp_path / "checkpoint")
    write_files(tmp_path / "in", events(1), files=3)  # two of them again, and one more
    frame = build(streaming(spark, tmp_path / "in"), wp.tumbling("20 s"), aggregates).to_spark(buckets=2)
    with pytest.raises(StreamingQueryException, match=r"(?s)window.*10000000.*20000000"):
        run(frame, tmp_path / "checkpoint")


def test_a_restart_with_another_number_of_buckets_is_refused(spark, tmp_path):
    from pyspark.errors import StreamingQueryException

    write_files(tmp_path / "in", events(), files=2)
    window, aggregates = wp.tumbling("10 s"), (wp.count(),)
    run(
        build(streaming(spark, tmp_path / "in"), window, aggregates).to_spark(buckets=2),
        tmp_path / "checkpoint",
    )
    write_files(tmp_path / "in", events(1), files=3)
    frame = build(streaming(spark, tmp_path / "in"), window, aggregates).to_spark(buckets=1)
    with pytest.raises(StreamingQueryException, match="over 2 buckets by k, but now over 1 buckets"):
        run(frame, tmp_path / "checkpoint")
