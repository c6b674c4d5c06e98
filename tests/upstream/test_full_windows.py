"""Windows whose memory was full go on once keys can be forgotten, and say what helps until then."""

import numpy as np
import pyarrow as pa
import pytest

import windowpane as wp
from windowpane.errors import OutOfMemory

UPDATES = wp.Updates("k", "t")


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def rows(keys, t=0):
    return pa.table({"k": keys, "t": [t] * len(keys), "v": [1.0] * len(keys)})


def room_of(make):
    """How many keys of one row each there is room for."""
    fresh = make()
    with pytest.raises(OutOfMemory):
        fresh.put(rows(range(1_000)))
    return fresh.staleness().puts


def test_windows_that_are_full_have_room_again_once_keys_are_forgotten():
    clock = Clock()

    def make():
        return UPDATES.window(3, 1, memory=4_096, forget=10, clock=clock).agg(wp.sum("v"))

    room = room_of(make)
    fresh = make()
    fresh.put(rows(range(room)))
    failed = 0
    for _ in range(4):
        clock.now += 5.0  # a pause of the whole stream counts for half of `forget` at most
        try:
            fresh.put(rows([999]))
        except OutOfMemory:
            failed += 1
    assert failed == 2
    assert fresh.staleness().keys == (999,)
    assert fresh.staleness().puts == room + 2


def test_what_is_stored_before_the_memory_is_full_is_stored_once():
    clock = Clock()
    fresh = UPDATES.window(2, 2, memory=4_096, forget=10, clock=clock).agg(wp.collect("t"))
    room = room_of(lambda: UPDATES.window(2, 2, memory=4_096).agg(wp.collect("t")))
    fresh.put(rows(range(5)))
    clock.now += 5.0
    fresh.put(rows(range(5, room - 1)))
    clock.now += 5.0
    fresh.put(rows([5], t=1))  # keys come again
    clock.now += 4.0
    # Only a few keys are idle for long, so that none would be forgotten if there were room.
    new = [1_000, 1_001, 1_002, 5, 1_000, 1_001]
    fresh.put(pa.table({"k": new, "t": [0, 0, 0, 2, 1, 1], "v": [1.0] * 6}))
    got = {row["k"]: row["collect_t"] for row in fresh.get().to_pylist()}
    assert got == {5: [0, 1], 1_000: [0, 1], 1_001: [0, 1]}
    assert fresh.staleness().puts == room + 6
    assert fresh.staleness().forgotten[0] == 5
    assert set(fresh.staleness().keys) == {*range(5, room - 1), 1_000, 1_001, 1_002}


def test_a_full_memory_names_what_helps():
    counted, timed = (
        UPDATES.window(*span, memory=4_096).agg(wp.sum("v")) for span in ((3, 1), ("3 us", "1 us"))
    )
    for fresh, remedy in (
        (counted, r"needs more `memory` or a shorter `forget`\."),
        (timed, r"needs more `memory`, a shorter `forget` or a punctuation, so that windows end\."),
    ):
        with pytest.raises(OutOfMemory, match=rf"memory \(1 pages\) is full .* of 1000 tuples.*{remedy}"):
            fresh.put(rows(range(1_000)))
    timed.punctuate(9)
    with pytest.raises(OutOfMemory, match="windows end or what waits to be got first"):
        timed.put(rows(range(1_000, 2_000), t=10))
    assert timed.get().num_rows > 0
    timed.put(rows([5_000], t=10))


def test_a_key_for_which_there_was_no_room_is_no_key():
    clock = Clock()
    fresh = UPDATES.window(1, 1, memory=4_096, clock=clock).agg(wp.sum("v"))
    with pytest.raises(OutOfMemory):
        fresh.put(rows(range(1_000)))
    clock.now += 10.0
    freshness = fresh.staleness()
    assert freshness.keys == tuple(range(freshness.puts))
    assert freshness.average_queue == pytest.approx(5.0)
    assert fresh.get()["k"].to_pylist() == list(range(freshness.puts))
    fresh.put(rows([999, 998]))
    assert fresh.get()["k"].to_pylist() == [999, 998]
    assert fresh.staleness().keys == (*range(freshness.puts), 999, 998)
    assert np.isfinite(fresh.staleness().application).all()
