import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.simulate import MarketSpec, StreamSpec, event_times, generate, market

SECOND = 1_000_000


def table(spec: StreamSpec) -> pa.Table:
    return pa.Table.from_batches(generate(spec))


def times(spec: StreamSpec) -> np.ndarray:
    return table(spec)["ts"].cast(pa.int64()).to_numpy()


def test_the_same_spec_gives_the_same_stream():
    spec = StreamSpec(rows=5_000, keys=7, skew=1.1, disorder=0.3, gaps_per_minute=5, seed=4)
    assert table(spec).equals(table(spec))
    assert not table(spec).equals(table(StreamSpec(rows=5_000, keys=7, skew=1.1, disorder=0.3, seed=5)))


def test_batches_have_the_size_asked_for_and_lose_nothing():
    sizes = [batch.num_rows for batch in generate(StreamSpec(rows=1_000, batch_rows=300))]
    assert sizes == [300, 300, 300, 100]


def test_an_empty_stream_has_no_batches():
    assert list(generate(StreamSpec(rows=0, gaps_per_minute=5, disorder=0.5))) == []


def test_the_rate_holds_with_and_without_gaps():
    for gaps in (0, 5):
        t = event_times(StreamSpec(rows=2_000 * 600, rate=2_000, gaps_per_minute=gaps))
        assert pytest.approx(t[-1] - t[0], rel=0.01) == 600 * SECOND


def test_gaps_separate_sessions_five_times_a_minute():
    t = event_times(StreamSpec(rows=2_000 * 600, rate=2_000, gaps_per_minute=5))
    assert np.count_nonzero(np.diff(t) > SECOND) == pytest.approx(50, abs=1)
    assert np.all(np.diff(t) >= 0)


def test_disorder_keeps_gaps_free_of_tuples():
    spec = StreamSpec(rows=200_000, disorder=0.5, gaps_per_minute=5)
    assert np.array_equal(np.sort(times(spec)), event_times(spec))


@given(
    disorder=st.floats(0, 1),
    delay=st.integers(1, 10 * SECOND),
    seed=st.integers(0, 2**32),
)
def test_no_tuple_is_later_than_the_greatest_delay(disorder, delay, seed):
    t = times(StreamSpec(rows=2_000, rate=500, disorder=disorder, max_delay=delay, seed=seed))
    assert np.all(t >= np.maximum.accumulate(t) - delay)


def test_about_the_asked_fraction_is_late():
    t = times(StreamSpec(rows=100_000, disorder=0.2))
    assert np.mean(t < np.maximum.accumulate(t)) == pytest.approx(0.2, abs=0.01)


def test_disorder_moves_tuples_but_does_not_change_them():
    ordered = table(StreamSpec(rows=3_000, keys=5))
    mixed = table(StreamSpec(rows=3_000, keys=5, disorder=0.4)).sort_by("ts")
    assert mixed.equals(ordered)


def test_uniform_and_skewed_keys():
    uniform = np.bincount(table(StreamSpec(rows=100_000, keys=10))["key"].to_numpy())
    skewed = np.bincount(table(StreamSpec(rows=100_000, keys=10, skew=1.0))["key"].to_numpy())
    assert uniform.min() > 9_000
    assert skewed[0] == pytest.approx(10 * skewed[9], rel=0.1)


def test_values_have_the_cardinality_asked_for():
    assert len(table(StreamSpec(rows=50_000, distinct=100))["value"].unique()) == 100


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rate": 0}, "StreamSpec: rate is 0, but it must be above 0."),
        ({"rows": -1}, "StreamSpec: rows is -1, but it must not be negative."),
        ({"disorder": 1.5}, "StreamSpec: disorder is 1.5, but it is a fraction from 0 to 1."),
        ({"gaps_per_minute": 60, "gap": SECOND}, "60 gaps of 1000000 us leave no room in a minute"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(wrong, message):
    with pytest.raises(ValueError, match=message):
        StreamSpec(**wrong)


def test_market_ticks_have_sensible_columns():
    ticks = pa.Table.from_batches(market(MarketSpec(stream=StreamSpec(rows=10_000, keys=8, disorder=0.2))))
    assert ticks.column_names == ["ts", "symbol", "price", "volume"]
    assert ticks["price"].to_numpy().min() > 0
    assert ticks["volume"].to_numpy().min() >= 1


def test_market_needs_as_many_symbols_as_keys():
    with pytest.raises(ValueError, match="1 symbols, but the stream has 8 keys"):
        MarketSpec(symbols=("ALFA",))
