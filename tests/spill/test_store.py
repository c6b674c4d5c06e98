"""The block store gives the rows that the plain one gives, with tiny blocks, tiny pools, and restarts."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.spill.plain import MemoryStore
from windowpane.core.spill.checkpoint import flush, revive, settle
from windowpane.core.spill.codec import block_layout
from windowpane.core.spill.medium import FileMedium, MemoryMedium
from windowpane.core.spill.store import BlockStore
from windowpane.values.errors import BadQuery, DiskFull

LAYOUT = block_layout({"time": np.int64, "key": np.int32, "valid": np.uint8}, 64 + 13 * 3 + 9)


def batch(first, n):
    at = np.arange(first, first + n)
    return at, at.astype(np.int32) * 3, (at % 251).astype(np.uint8)


def drained(store, window, n):
    """The next n rows, released as they are read."""
    found = []
    while n:
        columns = store.oldest(window)
        took = min(n, len(columns[0]) if columns else 0)
        if took == 0:
            break
        found.append([column[:took].tolist() for column in columns])
        store.release(window, took)
        n -= took
    return [list(chain(*parts)) for parts in zip(*found, strict=True)]


def steps():
    return st.lists(
        st.one_of(
            st.tuples(st.just("append"), st.integers(0, 12)),
            st.tuples(st.just("read"), st.integers(0, 3), st.integers(1, 15)),
            st.tuples(st.just("add")),
            st.tuples(st.just("remove"), st.integers(0, 3)),
            st.tuples(st.just("resize"), st.integers(2, 9)),
            st.tuples(st.just("restart")),
        ),
        max_size=60,
    )


@settings(max_examples=300)
@given(steps=steps(), frames=st.integers(2, 6))
def test_rows_come_back_as_they_were_appended(steps, frames):
    plain, medium = MemoryStore(3), MemoryMedium()
    store = BlockStore(LAYOUT, medium, frames, identity=b"0123456789abcdef")
    names, seen = [(plain.add_window(), store.add_window())], 0
    for step in steps:
        match step:
            case "append", n:
                plain.append(batch(seen, n))
                store.append(batch(seen, n))
                seen += n if names else 0
            case "read", which, n if names:
                a, b = names[which % len(names)]
                assert drained(plain, a, n) == drained(store, b, n)
            case ("add",) if len(names) < 4:
                names.append((plain.add_window(), store.add_window()))
            case "remove", which if names:
                a, b = names.pop(which % len(names))
                plain.remove_window(a)
                store.remove_window(b)
            case "resize", frames:
                store.resize(frames)
            case ("restart",):
                state = flush(store)
                settle(store)
                # what a lost life did after the checkpoint must neither spoil it nor come back
                for window in list(store.windows)[:1]:
                    drained(store, window, 5)
                store.append(batch(10**6, 17))
                store = revive(LAYOUT, medium, state, frames)
        assert len(store._frames) <= store.frames
        assert store.free.end <= store.blocks + len(store.free) + store.free.held + 4
    for a, b in names:
        assert drained(plain, a, 10**6) == drained(store, b, 10**6)


@given(
    frames=st.integers(2, 6),
    before=st.integers(0, 40),
    fails=st.integers(0, 8),
    n=st.integers(1, 40),
    read=st.integers(0, 40),
)
def test_a_failed_append_adds_nothing(frames, before, fails, n, read):
    plain, medium = MemoryStore(3), MemoryMedium()
    store = BlockStore(LAYOUT, medium, frames)
    a, b = plain.add_window(), store.add_window()
    plain.append(batch(0, before))
    store.append(batch(0, before))
    assert drained(plain, a, read) == drained(store, b, read)
    write, left = medium.write, [fails]

    def failing(slot, block):
        if left[0] == 0:
            raise DiskFull("no room")
        left[0] -= 1
        write(slot, block)

    medium.write = failing
    try:
        store.append(batch(before, n))
        plain.append(batch(before, n))
    except DiskFull:
        pass
    medium.write = write
    plain.append(batch(before + n, 9))
    store.append(batch(before + n, 9))
    assert drained(plain, a, 10**6) == drained(store, b, 10**6)


def rolled(store, medium, windows, rows, sizes):
    """Slide windows of these sizes over many rows; requests and steady-state block count."""
    capacity = store.layout.capacity
    for at in range(0, rows, capacity):
        store.append(batch(at, capacity))
        for window, size in sorted(zip(windows, sizes, strict=True), key=lambda pair: pair[1]):
            drained(store, window, max(0, store.rows(window) - size))
    return medium.counts


def test_slidem_writes_and_reads_each_block_once_and_reuses_places(tmp_path):
    medium = FileMedium(tmp_path / "blocks", LAYOUT.block_bytes)
    store = BlockStore(LAYOUT, medium, 2)
    window, capacity = store.add_window(), store.layout.capacity
    blocks, held = 200, 20
    counts = rolled(store, medium, [window], blocks * capacity, [held * capacity])
    # all blocks but the first, which stays as the ancient one, and the last, which is being filled
    assert counts.writes == blocks - 2
    assert counts.reads == blocks - held - 1
    assert store.free.end <= held + 1
    assert counts.bytes_written == counts.writes * LAYOUT.block_bytes
    assert medium.path.stat().st_mode & 0o777 == 0o600


def test_a_pool_that_holds_the_window_never_touches_the_disk():
    medium = MemoryMedium()
    store = BlockStore(LAYOUT, medium, 12)
    window, capacity = store.add_window(), store.layout.capacity
    counts = rolled(store, medium, [window], 300 * capacity, [10 * capacity])
    assert counts.requests == 0


def test_a_larger_pool_changes_nothing_while_the_window_does_not_fit():
    requests = []
    for frames in (2, 5, 15):
        medium = MemoryMedium()
        store = BlockStore(LAYOUT, medium, frames)
        window, capacity = store.add_window(), store.layout.capacity
        counts = rolled(store, medium, [window], 400 * capacity, [40 * capacity])
        before = counts.requests
        for at in range(400, 500):
            store.append(batch(at * capacity, capacity))
            drained(store, window, capacity)
        requests.append(counts.requests - before)
    assert requests == [200, 200, 200]


def test_windows_share_their_rows():
    capacity = LAYOUT.capacity
    sizes = [10 * capacity, 20 * capacity, 30 * capacity]
    medium = MemoryMedium()
    store = BlockStore(LAYOUT, medium, 4)
    windows = [store.add_window() for _ in sizes]
    rolled(store, medium, windows, 100 * capacity, sizes)
    assert store.blocks <= 32
    assert store.free.end <= 32


def test_the_victim_is_the_block_that_is_needed_last():
    """Compared with the rule as written: the largest of the smallest positive distances."""
    rng = np.random.default_rng(5)
    capacity = LAYOUT.capacity
    store = BlockStore(LAYOUT, MemoryMedium(), 9)
    sizes = [7 * capacity, 19 * capacity, 40 * capacity]
    windows = [store.add_window() for _ in sizes]
    evict = store._evict
    chosen = []

    def checked():
        ancient = {cursor.number for cursor in store.windows.values()}
        recent = store._recent.number
        ref = {
            k: min(k - a for a in ancient if a < k)
            for k in store._frames
            if k not in ancient and (k != recent or k in chain(*store.residency._runs))
        }
        before = set(store._frames)
        evict()
        (gone,) = before - set(store._frames)
        assert ref[gone] == max(ref.values())
        chosen.append(gone)

    store._evict = checked
    seen = 0
    for _ in range(300):
        n = int(rng.integers(1, 2 * capacity))
        store.append(batch(seen, n))
        seen += n
        for window, size in zip(windows, sizes, strict=True):
            drained(store, window, max(0, store.rows(window) - size))
    assert len(chosen) > 100


def test_a_block_too_small_for_a_row_is_refused():
    with pytest.raises(BadQuery, match="a block of 64 bytes has no room for a row of 8 bytes"):
        block_layout({"time": np.int64}, 64)


class FullMedium(MemoryMedium):
    """A disk that takes nothing while it is full."""

    full = writes_fail = False

    def write(self, slot, block):
        if self.writes_fail:
            raise DiskFull("full")
        super().write(slot, block)

    def reserve(self, slots):
        if self.full and slots > len(self.blocks):
            raise DiskFull("full")


def test_reading_does_not_fail_for_want_of_room():
    """Blocks came into a larger pool without a place on disk; then the disk fills up, and windows read."""
    layout = block_layout({"t": np.int64}, 64 + 8 * 4)
    medium = FullMedium()
    store = BlockStore(layout, medium, 3)
    large, small = store.add_window(), store.add_window()
    rows = np.arange(4 * 30)
    store.append([rows[:40]])
    store.resize(6)
    store.append([rows[40:48]])
    medium.full = medium.writes_fail = True
    read = {large: [], small: []}

    def take(window, upto):
        while len(read[window]) < upto:
            (oldest,) = store.oldest(window)
            read[window] += oldest.tolist()
            store.release(window, len(oldest))

    take(small, 44)
    with pytest.raises(DiskFull):
        store.append([rows[48:80]])
    medium.full = medium.writes_fail = False
    store.append([rows[48:]])
    take(small, len(rows))
    take(large, len(rows))
    assert read[large] == read[small] == rows.tolist()
    assert len(store._frames) <= store.frames


def test_a_smaller_pool_reserves_before_it_sends_away():
    layout = block_layout({"t": np.int64}, 64 + 8 * 4)
    medium = FullMedium()
    store = BlockStore(layout, medium, 8)
    window = store.add_window()
    store.append([np.arange(32)])
    medium.full = True
    with pytest.raises(DiskFull):
        store.resize(2)
    assert medium.counts.writes == 0
    medium.full = False
    store.resize(2)
    assert len(store._frames) == 2
    assert store.oldest(window)[0].tolist() == [0, 1, 2, 3]
