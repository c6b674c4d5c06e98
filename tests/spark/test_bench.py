"""The answers that `bench spark` measures are checked, with Spark's own windows or without."""

import numpy as np
import pyarrow as pa

from tests.spark.harness import streaming, write_files
from windowpane.bench.spark import QUICK, Measured, _Bench
from windowpane.bench.spark_truth import asked, truth

WINDOWS = ((60, 1), (600, 30))


def events(n=3_000):
    rng = np.random.default_rng(0)
    time = 1_700_000_000_000_000 + np.sort(rng.integers(0, 300_000, n)) * 1000
    stamps = pa.array(time, pa.timestamp("us", "UTC"))
    return pa.table(
        {"ts": stamps, "key": rng.integers(0, 5, n).astype(np.int32), "value": rng.integers(0, 99, n)}
    )


def test_the_digest_in_this_process_is_that_of_the_same_answers_on_spark(spark, tmp_path):
    write_files(tmp_path / "in", events(), files=2)
    bench = _Bench(spark, tmp_path, QUICK, lambda *_: None)
    found = bench._answers(
        [asked(streaming(spark, tmp_path / "in"), WINDOWS).to_spark()], tmp_path / "checkpoint"
    )
    assert found == truth(spark, tmp_path / "in", WINDOWS)
    assert found["answers"] > 1_000
    write_files(tmp_path / "other", events().set_column(2, "value", pa.array(range(3_000))), files=2)
    assert truth(spark, tmp_path / "other", WINDOWS)["digest"] != found["digest"]


def test_a_case_whose_answers_differ_does_not_count_as_the_same(tmp_path):
    right, wrong = {"answers": 2, "digest": 7, "tuples": 9}, {"answers": 2, "digest": 8, "tuples": 9}
    cases = ("60/60", "60/1", "600/1", "3600/1")
    found = {("windowpane", case): Measured(1.0, answers=right) for case in cases}
    found |= {("built-in", case): Measured(9.0, answers=right) for case in cases[:2]}
    truths = dict.fromkeys(cases, right)
    bench = _Bench(None, tmp_path, QUICK, lambda *_: None)
    for told, same in ((truths, 4), (truths | {"3600/1": wrong}, 3)):
        report = bench._claims(found, told)
        claim = report.claims[0]
        assert (claim.name, claim.value, claim.bar) == ("cases whose answers are the same", same, 4)
        assert claim.holds == (same == 4)
        ours = {row["window"]: row["checked_by"] for row in report.rows if row["engine"] == "windowpane"}
        assert ours == {
            "60/60": "built-in",
            "60/1": "built-in",
            "600/1": "in-process",
            "3600/1": "in-process",
        }
