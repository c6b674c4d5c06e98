"""An example after figure 2 of Traub et al. 2019: sliding windows share the partials of slices.

The windows have length 10 and slide 4; their starts and ends cut the stream into slices of 2:

    time     0   2   4   6   8  10  12  14  16  18
    values  5 1  2   3 4    6   1   2  8   3
    slices | 6 | 2 | 7 |   | 6 | 1 | 2 | 8 | 3 |
    windows[0, 10) = 6+2+7+6         = 21
           [4, 14)     = 7+6+1+2     = 16
           [8, 18)         = 6+1+2+8+3 = 20
"""

import pyarrow as pa
import pytest

import windowpane as wp
from tests.oracle import OracleQuery, answer

pytestmark = pytest.mark.paper
STREAM = [(0, 5), (1, 1), (2, 2), (4, 3), (5, 4), (8, 6), (10, 1), (13, 2), (14, 8), (16, 3)]
LATE = [(0, 5), (2, 2), (1, 1), (5, 4), (8, 6), (4, 3), (13, 2), (10, 1), (16, 3), (14, 8)]
SLICES = {0: 6, 2: 2, 4: 7, 8: 6, 10: 1, 12: 2, 14: 8, 16: 3}
WINDOWS = {(-8, 2): 6, (-4, 6): 15, (0, 10): 21, (4, 14): 16, (8, 18): 20, (12, 22): 13, (16, 26): 3}


def start(found, *windows):
    stream = wp.stream(
        time="ts", punctuation=wp.manual(), schema=pa.schema({"ts": pa.int64(), "v": pa.int64()})
    )
    runner = stream.window(*windows).agg(total=wp.sum("v")).start()
    for ts, v in found:
        runner.push({"ts": [ts], "v": [v]})
    return runner


def slices(runner):
    """The sum of each slice in the table."""
    lane = runner.operator.lanes[0].lane
    (rows,) = [segment.rows for segment in lane.table.segments]
    at = [type(partial).__name__ for partial in lane.spec.layout].index("IntSum")
    high, low = rows.partials[at][:2]
    return dict(zip(rows.start.tolist(), ((high << 32) + low).tolist(), strict=True))


def totals(table):
    return {(row["window"]["start"], row["window"]["end"]): row["total"] for row in table.to_pylist()}


@pytest.mark.parametrize("found", [STREAM, LATE], ids=["in order", "out of order"])
def test_each_tuple_is_in_one_slice_and_each_window_is_a_sum_of_slices(found):
    runner = start(found, wp.sliding(10, 4))
    assert slices(runner) == SLICES
    assert totals(runner.answers(runner.close())) == WINDOWS
    assert all(
        total == sum(v for at, v in SLICES.items() if low <= at < high)
        for (low, high), total in WINDOWS.items()
    )


def test_the_figures_agree_with_the_definition():
    query = OracleQuery(wp.sliding(10, 4), {"total": ("sum", "v")})
    expected = answer(query, [{"ts": ts, "v": v} for ts, v in STREAM])
    assert {(low, high): row["total"] for (_, low, high), row in expected.items()} == WINDOWS


def test_a_window_comes_when_its_last_slice_is_complete():
    runner = start(STREAM, wp.sliding(10, 4))
    assert totals(runner.answers(runner.punctuate(9))) == {(-8, 2): 6, (-4, 6): 15}
    assert totals(runner.answers(runner.punctuate(10))) == {(0, 10): 21}
    assert totals(runner.answers(runner.punctuate(14))) == {(4, 14): 16}


def test_slices_that_no_window_needs_any_more_are_forgotten():
    runner = start(STREAM, wp.sliding(10, 4))
    runner.punctuate(18)
    assert slices(runner) == {at: v for at, v in SLICES.items() if at >= 8}


def test_windows_of_several_lengths_share_the_slices():
    runner = start(STREAM, wp.sliding(10, 4), wp.sliding(6, 2), wp.tumbling(4))
    assert slices(runner) == SLICES
    found = {
        (r["definition"], r["window"]["start"]): r["total"]
        for r in runner.answers(runner.close()).to_pylist()
    }
    assert {start: total for (number, start), total in found.items() if number == 2} == {
        0: 8,
        4: 7,
        8: 7,
        12: 10,
        16: 3,
    }
    assert found[1, 4] == 13
    assert found[1, 8] == 9
