"""Columns of update streams may come in any of Arrow's layouts, and one of nulls only has no type yet."""

import pickle

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windowpane as wp
from windowpane.errors import BadQuery, WrongType

UPDATES = wp.Updates("k", "t")
LAYOUTS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string_view())]


def texts(kind, t=1):
    name = pa.array(["x", None])
    if pa.types.is_dictionary(kind):
        encoded = name.dictionary_encode()
        name = pa.DictionaryArray.from_arrays(encoded.indices, encoded.dictionary.cast(kind.value_type))
    return pa.table({"k": pa.array(["a", "b"], pa.string_view()), "t": [t] * 2, "n": name.cast(kind)})


@pytest.mark.parametrize("kind", LAYOUTS, ids=str)
def test_operators_take_texts_of_any_layout(kind):
    rows, later = texts(kind), texts(kind, t=2)
    assert UPDATES.filter(rows, lambda r: pc.is_valid(r["n"])).select(["k", "n"]).to_pylist() == [
        {"k": "a", "n": "x"}
    ]
    assert UPDATES.map(rows, lambda r: r)["n"].to_pylist() == ["x", None]
    union, join = UPDATES.union(), UPDATES.join(within=5)
    assert union.push(rows).to_pylist() == rows.to_pylist()
    assert union.push(later).to_pylist() == later.to_pylist()
    for some in (rows, later):
        found = join.push(some, some)
        assert found["n"].to_pylist() == found["right_n"].to_pylist() == ["x", None]


def test_what_cannot_go_out_does_not_count_as_sent():
    union, runs = UPDATES.union(), pa.RunEndEncodedArray.from_arrays(pa.array([2], pa.int32()), ["x"])
    rows = texts(pa.string()).append_column("l", pa.StructArray.from_arrays([runs], ["x"]))
    for _ in range(2):
        with pytest.raises(pa.ArrowNotImplementedError):  # Arrow takes no rows of such structs
            union.push(rows)
    plain = rows.set_column(3, "l", pa.array([{"x": "x"}, {"x": "x"}]))
    assert union.push(plain).to_pylist() == plain.to_pylist()


def rows(**columns):
    n = max(len(column) for column in columns.values())
    return pa.table({"k": ["a"] * n, "t": range(n), "v": range(n)} | columns)


TIMES = pa.array([1, 3], pa.timestamp("s"))
REFUSED = [
    (rows(t=[1.5]), rows(t=TIMES)),
    (rows(t=pa.nulls(1)), rows(t=TIMES)),
    (rows(t=pa.nulls(1, pa.timestamp("us"))), rows(t=TIMES, v=[0.5, 1.5])),
    (rows(t=["1"], k=[1.5]), rows(t=TIMES, k=["a", "a"])),
    (rows(t=pa.nulls(1, pa.int64()), k=[1.5]), rows(t=TIMES, k=["a", "a"])),
    (rows(t=TIMES, k=[["a"], ["a"]]), rows(t=TIMES, k=["a", "a"])),
]


@pytest.mark.parametrize("commit", ["lazy", "eager"])
@pytest.mark.parametrize(("refused", "right"), REFUSED)
def test_refused_rows_fix_no_type_of_windows(commit, refused, right):
    fresh = UPDATES.window("2 s", commit=commit, clock=lambda: 0.0).agg(wp.count(), wp.sum("v"))
    stored = pickle.dumps(fresh.__getstate__() | {"_clock": None})
    with pytest.raises((WrongType, BadQuery)):
        fresh.put(refused)
    assert pickle.dumps(fresh.__getstate__() | {"_clock": None}) == stored
    assert fresh.put(right) == 0
    fresh.punctuate(4_000_000)
    assert fresh.get()["sum_v"].to_pylist() == [right["v"][1].as_py()]


@pytest.mark.parametrize("side", [0, 1])
@pytest.mark.parametrize(("refused", "right"), REFUSED)
def test_refused_rows_fix_no_type_of_unions_and_joins(refused, right, side):
    for operator in (UPDATES.union(), UPDATES.join("10 s")):
        wrong = [refused, refused.slice(0, 0)]
        with pytest.raises((WrongType, BadQuery)):
            operator.push(wrong[side], wrong[1 - side])
        assert operator.push(right, right).num_rows == 1


def test_refused_rows_change_nothing_of_windows_that_hold_rows():
    fresh = UPDATES.window(2).agg(wp.sum("v"))
    fresh.put(rows(k=["a"]))
    for wrong in (rows(v=[0.5]), rows(k=[1]), rows(v=["x"])):
        with pytest.raises(WrongType):
            fresh.put(wrong)
    assert fresh.staleness().keys == ("a",)
    fresh.put(rows(k=["a", "b"]))
    assert fresh.staleness().keys == ("a", "b")
    assert fresh.get()["sum_v"].to_pylist() == [0]


@pytest.mark.parametrize("commit", ["lazy", "eager"])
@pytest.mark.parametrize(
    "later", [pa.array([0.5, 2.0]), pa.array([5, 9], pa.timestamp("s")), pa.array([3, 4])]
)
def test_a_column_of_nulls_fixes_no_type_of_windows(commit, later):
    wanted = [wp.count(), wp.count("v"), wp.max("v"), wp.first("v"), wp.collect("v"), wp.sum("n"),
              wp.arg_max("n", "v"), wp.arg_min("v", "n"), wp.distinct("v"), wp.variance("n")]  # fmt: skip
    fresh, typed = (UPDATES.window(3, commit=commit, clock=lambda: 0.0).agg(*wanted) for _ in range(2))
    nulls = pa.table({"k": ["a", "b"], "t": [1, 1], "v": pa.nulls(2), "n": [1, 2]})
    some = pa.table({"k": ["a", "b"] * 2, "t": [2, 2, 3, 3], "n": [3, 4, 5, 6],
                     "v": pa.concat_arrays([later, later])})  # fmt: skip
    for operator, first in ((fresh, nulls), (typed, nulls.set_column(2, "v", pa.nulls(2, later.type)))):
        operator.put(first)
        assert operator.get(9).num_rows == 0  # eager has begun the windows
        operator.put(first.slice(0, 0))
        operator.put(some)
    found = fresh.get()
    assert found.num_rows == 2
    assert found.equals(typed.get())
    with pytest.raises(WrongType, match="column 'v' has type bool"):
        fresh.put(rows(v=[True], n=[1]))
    fresh = UPDATES.window(3, commit=commit).agg(*wanted)
    fresh.put(nulls)
    fresh.get()
    for _ in range(2):
        with pytest.raises(WrongType, match="column 'v' has type string"):
            fresh.put(rows(v=["x"], n=[1]))
    assert fresh.put(some) == 0
    assert fresh.get().num_rows == 2


def test_keys_of_nulls_only_fix_no_type():
    none = pa.table({"k": pa.nulls(2), "m": ["x", "y"], "t": [1, 1], "v": [1, 2]})
    some = pa.table({"k": ["a", None], "m": ["x", "y"], "t": [2, 2], "v": [3, 4]})
    updates = wp.Updates(["k", "m"], "t")
    fresh, union, join = updates.window(2).agg(wp.sum("v")), updates.union(), updates.join(within=9)
    fresh.put(none)
    fresh.put(some)
    assert fresh.get().to_pylist() == [{"k": None, "m": "y", "window": {"start": 0, "end": 2}, "sum_v": 6}]
    assert [union.push(part).num_rows for part in (none, some, none, some)] == [2, 2, 0, 0]
    assert join.push(none, none.slice(0, 0)).num_rows == 0
    assert join.push(some.slice(0, 0), some)["right_v"].to_pylist() == [4]
    with pytest.raises(WrongType, match="column 'k' has type int64, but string is needed"):
        fresh.put(some.set_column(0, "k", pa.array([1, 2])))


def test_a_join_finds_its_rows_in_whichever_piece_they_lie():
    encoded = pa.array(["x", "y"] * 20).dictionary_encode()
    whole = pa.table({"k": [i % 7 for i in range(40)], "t": range(40), "n": encoded, "v": pa.nulls(40)})
    join, none = UPDATES.join(within=100), whole.slice(0, 0)
    for i in range(40):
        part = whole.slice(i, 1)
        if i == 20:
            part = part.set_column(3, "v", pa.array([2.5]))
        assert join.push(part, none).num_rows == 0
    assert 1 < len(join._rows[0].pieces) < 6
    found = join.push(none, whole.slice(0, 7)).sort_by("k")
    last = {i % 7: i for i in range(40)}
    assert found["t"].to_pylist() == [last[k] for k in range(7)]
    assert found["n"].to_pylist() == [encoded[last[k]].as_py() for k in range(7)]
    assert found.schema.field("v").type == pa.float64()
