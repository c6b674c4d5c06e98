"""The journal of keys that changed: what is written is what changed, and all of it can be read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windowpane.spark import fresh_journal
from windowpane.spark.fresh_journal import Journal, ids_of

CHUNK = 8


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(fresh_journal, "CHUNK", CHUNK)


class Log:
    """A journal and what its blocks would hold: for each key when it last changed."""

    def __init__(self):
        self.journal, self.truth, self.blocks, self.written = Journal(), np.zeros(0, np.int64), {}, 0

    def store(self, keys, changed, *, anew=False):
        changed = np.unique(np.append(np.array(sorted(changed), np.int64), np.arange(len(self.truth), keys)))
        self.truth = np.append(self.truth, np.zeros(keys - len(self.truth), np.int64))
        now = self.journal.now + 1
        self.truth[changed] = now
        chunks = self.journal.turn(keys, changed, anew=anew)
        self.written = sum(len(ids_of(place, keys)) for place in chunks)
        for place in chunks:
            self.blocks["chunk", place] = ids_of(place, keys), self.truth[ids_of(place, keys)]
        if now in self.journal.entries:
            ids = self.journal.entries[now]
            self.written += len(ids)
            self.blocks["entry", now] = ids, self.truth[ids]
        self.blocks = {
            name: block
            for name, block in self.blocks.items()
            if name[0] == "chunk" or name[1] in self.journal.entries
        }

    def read(self):
        """What the blocks tell, read in the order of their age."""
        found = np.full(len(self.truth), -1)
        ages = {("chunk", i): at for i, at in enumerate(self.journal.written) if at}
        ages |= {("entry", at): at for at in self.journal.entries}
        for name in sorted(ages, key=ages.get):
            ids, values = self.blocks[name]
            found[ids] = values
        return found

    @property
    def rows(self):
        return sum(map(len, self.journal.entries.values()))


stores = st.lists(
    st.tuples(st.integers(0, 5), st.sets(st.integers(0, 99), max_size=12), st.integers(0, 19)), max_size=60
)


@given(first=st.integers(0, 60), script=stores)
def test_blocks_always_tell_the_last_change_of_every_key(first, script):
    log, keys = Log(), first
    log.store(keys, range(keys))
    for more, changed, anew in script:
        keys += more
        log.store(keys, {key % keys for key in changed} if keys else (), anew=anew == 0)
        assert log.read().tolist() == log.truth.tolist()
        journal = Journal.of(log.journal.to_json(), log.journal.entries)
        assert journal == log.journal


@pytest.mark.parametrize("few", [1, 5, 40])
def test_a_store_writes_a_small_multiple_of_what_changed_and_the_journal_stays_short(few):
    rng, log, written, entries = np.random.default_rng(few), Log(), [], []
    log.store(2_000, range(2_000))
    for _ in range(1_500):
        log.store(2_000, set(rng.integers(0, 2_000, few).tolist()))
        written.append(log.written)
        entries.append(len(log.journal.entries))
        assert log.rows <= 1_000 + 2 * few
    assert np.mean(written) <= 5 * few
    assert max(written) <= 4 * few + 2 * CHUNK
    # Eight entries of like size become one, unless that would be larger than two chunks.
    assert max(entries) <= 1_000 / max(few, CHUNK / 4) + 16


def test_a_store_without_a_change_writes_nothing():
    log = Log()
    log.store(100, range(100))
    log.store(100, ())
    assert log.written == 0
    assert log.journal.now == 2


def test_a_state_leads_to_later_ones_until_all_is_new():
    log = Log()
    log.store(100, range(100))
    before = Journal.of(log.journal.to_json(), log.journal.entries)
    assert before.leads_to(log.journal.to_json())
    log.store(100, {1, 2})
    assert before.leads_to(log.journal.to_json())
    other = Log()  # of the same numbers, but another history
    other.store(100, range(100))
    other.store(100, {1, 2})
    assert not before.leads_to(other.journal.to_json())
    log.store(100, range(100))
    assert before.leads_to(log.journal.to_json())
    log.store(100, (), anew=True)
    assert not before.leads_to(log.journal.to_json())
