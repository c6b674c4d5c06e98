"""Text and binary values as ids, with an order that every run agrees on."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from windowpane.core.interner import Interner

TEXTS = st.lists(st.none() | st.text(max_size=12), max_size=40)


@given(TEXTS, TEXTS)
def test_ids_give_back_the_values_and_survive_a_restart(first, second):
    interner = Interner(pa.string())
    ids, order = interner.encode(pa.array(first, pa.string()))
    assert interner.values(ids).to_pylist() == first
    restored = Interner.restore(pa.string(), interner.blocks())
    more = pa.array(second, pa.string()).dictionary_encode()
    ours, theirs = interner.encode(more), restored.encode(more)
    assert ours[0].tolist() == theirs[0].tolist()
    assert len(set(zip(first, order.tolist(), strict=True))) == len(set(first))
    assert len(restored) == len(set(first) | set(second))


@given(TEXTS)
def test_the_order_does_not_depend_on_what_was_interned_before(values):
    one, other = Interner(pa.string()), Interner(pa.large_string())
    other.encode(pa.array(["something", "else"], pa.large_string()))
    a = one.encode(pa.array(values, pa.string()))[1]
    b = other.encode(pa.array(values, pa.large_string()))[1]
    assert a.dtype == np.int64
    assert a.tolist() == b.tolist()


def test_forgotten_values_free_their_memory():
    interner = Interner(pa.binary())
    empty = interner.nbytes
    interner.encode(pa.array([str(i).encode() for i in range(20_000)], pa.binary()))
    live = np.zeros(20_000, np.bool_)
    live[[5, 19_999]] = True
    remap = interner.compact(live)
    assert (remap[5], remap[19_999], remap[0]) == (0, 1, -1)
    assert interner.values(np.array([0, 1])).to_pylist() == [b"5", b"19999"]
    assert interner.nbytes < empty + 200
    assert interner.type == pa.binary()
