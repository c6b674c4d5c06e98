"""A pushed column of another type is taken where no value changes by it."""

import pyarrow as pa
import pytest

import windowpane as wp

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string()), ("v", pa.int64())])


def pushed(table):
    runner = wp.stream(schema=SCHEMA, time="t", keys="k").window(wp.tumbling(10)).agg(wp.sum("v")).start()
    runner.push(pa.table({"t": [1], "k": ["a"], "v": [1]}, schema=SCHEMA))
    runner.push(table)
    return runner.answers(runner.close()).to_pylist()


@pytest.mark.parametrize(
    "keys",
    [pa.array(["a"]), pa.array(["a"], pa.large_string()), pa.array(["a"]).dictionary_encode()],
    ids=lambda keys: str(keys.type),
)
def test_texts_are_texts_however_they_are_stored(keys):
    assert pushed(pa.table({"t": [2], "k": keys, "v": [5]}))[0]["sum_v"] == 6


def test_a_chunk_of_nulls_only_has_no_type_of_its_own():
    assert pushed(pa.table({"t": [2], "k": ["a"], "v": pa.nulls(1)}))[0]["sum_v"] == 1


def test_another_type_is_still_refused():
    with pytest.raises(wp.errors.WrongType, match="'v' has type double"):
        pushed(pa.table({"t": [2], "k": ["a"], "v": [1.5]}))
