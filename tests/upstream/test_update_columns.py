"""Columns of update streams may come in any of Arrow's layouts, and one of nulls only has no type yet."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import windowpane as wp

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
    union, nested = UPDATES.union(), pa.array([["x"], []], pa.list_(pa.string_view()))
    rows = texts(pa.string()).append_column("l", nested)
    for _ in range(2):
        with pytest.raises(pa.ArrowNotImplementedError):  # Arrow takes no rows of such lists
            union.push(rows)
    plain = rows.set_column(3, "l", nested.cast(pa.list_(pa.string())))
    assert union.push(plain).to_pylist() == plain.to_pylist()
