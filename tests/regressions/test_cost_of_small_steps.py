"""What a step costs follows what it touches: counted in rows that are looked at, not in seconds."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import windowpane as wp
from windowpane.core import emission, ledger, slices
from windowpane.core.ledger import Ledger, Windows

ROWS = pa.schema({"t": pa.int64(), "k": pa.int64()})


def rows(times: list[int] | range, keys: list[int] | range) -> pa.Table:
    return pa.table({"t": list(times), "k": list(keys)}, schema=ROWS)


def test_each_answer_is_looked_at_once_however_many_queries_there_are(monkeypatch):
    stream = wp.stream(schema=ROWS, time="t", keys="k")
    queries = [stream.window(wp.tumbling(10 + i)).agg(wp.count(), name=f"q{i}") for i in range(30)]
    looked: list[int] = []
    order = emission.key_order
    monkeypatch.setattr(emission, "key_order", lambda key, n: looked.append(len(key)) or order(key, n))
    runner = wp.start(*queries)
    step = runner.push(rows(range(100), [0, 1] * 50))
    found = {name: table.num_rows for name, table in step.tables.items()}
    assert looked == [sum(found.values())]
    assert found == {f"q{i}": 2 * (99 // (10 + i)) for i in range(30)}


def test_positions_of_many_keys_are_not_sorted_where_no_window_closes(monkeypatch):
    query = wp.stream(schema=ROWS, time="t", keys="k").window(wp.rows(10).per()).agg(wp.count())
    runner = query.start()
    runner.push(rows([0] * 100, range(100)))
    asked: list[int] = []
    whole = slices.SliceTable.for_windows
    monkeypatch.setattr(slices.SliceTable, "for_windows", lambda *args: asked.append(1) or whole(*args))
    runner.push(rows([1], [5]))
    assert not asked
    assert runner.push(rows([2] * 9, [5] * 9)).tables["query"].num_rows == 0
    assert runner.push(rows([3], [7])).tables["query"]["count"].to_pylist() == [10]
    assert len(asked) == 1


def test_a_few_revisions_are_found_among_many_answers(monkeypatch):
    n = 1000
    every = Windows(*(np.full(n, 0), np.arange(n) % 7, np.arange(n) * 10, np.arange(n) * 10 + 10))
    known = Ledger(every, np.arange(n), np.arange(n))
    sorted_: list[int] = []
    whole = ledger._match_sorted
    monkeypatch.setattr(ledger, "_match_sorted", lambda a, b: sorted_.append(len(a) + len(b)) or whole(a, b))
    few = every.take(np.array([17, 500 - 1, 20]))
    assert known.revisions(few).tolist() == [17, 499, 20]
    assert np.nonzero(~known.missing(every.take(np.array([3, 5]))))[0].tolist() == [3, 5]
    other = Windows(*(np.array([value]) for value in (1, 3, 30, 40)))
    assert known.revisions(other).tolist() == [-1]
    assert known.revisions(Windows(*(np.array([value]) for value in (0, 0, 9**9, 9**9 + 1)))).tolist() == [-1]
    assert max(sorted_) < n
