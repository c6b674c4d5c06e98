"""What the tables of update streams must be, and what a user's functions may make of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.arrays import Column, Ints
from windowpane.core.column_types import plain_type
from windowpane.core.columns import flat, is_text, raw_values, scale_of, usable_time
from windowpane.core.key_types import fitted, stored
from windowpane.core.keys import KeyIndex
from windowpane.local.rows import need_columns, widely_indexed_table
from windowpane.values.errors import BadQuery, WrongType, wrong_type

Types = dict[str, pa.DataType]
_FINER = -1_000
"""The scale of nanoseconds: so many of them are a microsecond."""


def need_same_key(name: str, was: pa.ChunkedArray, is_now: pa.ChunkedArray) -> None:
    """Refuse what a map made of a key column, if it is not the same."""
    index = KeyIndex((name,), (was.type,))
    try:
        differs = index.encode([was]) != index.encode([is_now])
        at = int(differs.argmax()) if differs.any() else None
        change = None if at is None else f"from {was[at].as_py()!r} to {is_now[at].as_py()!r}"
    except WrongType:
        change = f"from {was.type} to {is_now.type}"
    if change:
        raise BadQuery(
            f"map changes {name!r}, which is part of the update key, {change}. Write the result to another "
            "column."
        )


def joined_names(keys: Sequence[str], left: pa.Table, right: pa.Table) -> list[str]:
    """The columns of a join: `right_` stands before names of the right that the left has too."""
    taken = left.column_names
    rest = [name for name in right.column_names if name not in keys]
    return [*taken, *(f"right_{name}" if name in taken else name for name in rest)]


def need_own_names(names: Sequence[str]) -> None:
    """Each column of a join must have a name of its own, or one would hide the other."""
    for name in names:
        if names.count(name) > 1:
            raise BadQuery(
                f"the join would have two columns {name!r}. Rename one of them in its table, or drop it."
            )


def need_like_times(name: str, left: pa.Table, right: pa.Table) -> None:
    """Refuse moments on one side of a join and numbers on the other: how far they are apart means nothing."""
    kinds = [plain_type(rows.schema.field(name).type) for rows in (left, right)]
    if pa.types.is_integer(kinds[0]) != pa.types.is_integer(kinds[1]):
        remedy = "Cast it on one side: both must be whole numbers, or both timestamps or dates."
        raise wrong_type(name, f"{kinds[1]} on the right", f"one like {kinds[0]} on the left", remedy)


def stacked(tables: Sequence[pa.Table], names: Sequence[str], keys: Sequence[str]) -> pa.Table:
    """The rows of all tables, which must have the same columns; in the order of the first.

    Keys may have other types if they stay what they are; they get the first one.
    """
    columns = tables[0].column_names
    tables = [widely_indexed_table(rows) for rows in tables]
    for rows, name in zip(tables, names, strict=True):
        need_columns(rows.column_names, rows.column_names, name)
        odd = set(columns) ^ set(rows.column_names)
        if odd:
            column = min(odd)
            has, lacks = (names[0], name) if column in columns else (name, names[0])
            raise BadQuery(
                f"{lacks} has no column {column!r}, but {has} has. Add it, with nulls if need be, or drop it."
            )
    for column in columns:
        tables = _of_one_type(column, tables, names, cast=column in keys)
    return pa.concat_tables([rows.select(columns) for rows in tables], promote_options="default")


def _of_one_type(
    column: str, tables: Sequence[pa.Table], names: Sequence[str], *, cast: bool
) -> list[pa.Table]:
    """The tables with a column in the type that it has first; one of nulls only fits all types."""
    made, kinds = list(tables), [rows.schema.field(column).type for rows in tables]
    first, *others = [i for i, kind in enumerate(kinds) if not pa.types.is_null(kind)] or [0]
    for i in others:
        if kinds[i] != kinds[first] and not cast:
            wanted = f"{kinds[first]} as in {names[first]}"
            raise wrong_type(column, kinds[i], wanted, f"Cast it in {names[i]}.")
        if kinds[i] != kinds[first]:
            at = tables[i].column_names.index(column)
            made[i] = tables[i].set_column(at, column, _cast_keys(column, tables[i][column], kinds[first]))
    return made


def _cast_keys(name: str, column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    """A key column in another type; refused where a value would become another."""
    fitted(name, flat(column), stored(name, wanted))
    try:
        if pa.types.is_dictionary(wanted):  # Arrow itself does so for texts only
            column = column.cast(wanted.value_type).dictionary_encode()
        return column.cast(wanted)
    except pa.ArrowException as error:
        remedy = f"Cast the column before its rows are given ({error})."
        raise wrong_type(name, column.type, str(wanted), remedy) from error


def event_times(column: pa.ChunkedArray, name: str) -> Ints:
    """Event times, moments in microseconds; finer ones are refused, as they would become equal."""
    times = usable_time(column, name)
    odd = _finer(column)
    if odd is not None:
        raise BadQuery(
            f"column {name!r} holds {odd} ({plain_type(column.type)}), which is no whole microsecond, so "
            "that younger rows could not be told from older ones. Cast the column to microseconds, with "
            "cast(pa.timestamp('us'), safe=False)."
        )
    return times


def key_columns(index: KeyIndex, rows: pa.Table) -> list[pa.Array]:
    """The keys of rows in the types of the index; refused where two could become one."""
    for name, kind in zip(index.names, index.types, strict=True):
        odd = _finer(rows[name])
        if odd is not None:
            remedy = f"Cast the column before its rows are given ({odd} is no whole microsecond)."
            raise wrong_type(name, plain_type(rows[name].type), str(kind), remedy)
    return index.fitted([rows[name] for name in index.names])


def _finer(column: pa.ChunkedArray) -> int | None:
    """The first nanoseconds that are no whole microseconds, by which times are told apart."""
    if scale_of(plain_type(column.type)) != _FINER:
        return None
    array = flat(column)
    plain = array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
    raw = raw_values(plain.drop_null(), np.int64)
    odd = raw[raw % -_FINER != 0]
    return int(odd[0]) if len(odd) else None


def types_with(known: Mapping[str, pa.DataType], rows: pa.Table, names: Sequence[str]) -> Types:
    """The types of columns, which must be those that are known; nulls alone fix no type."""
    types = dict(known)
    for name in names:
        kind = rows.schema.field(name).type
        found = kind.value_type if pa.types.is_dictionary(kind) else kind
        was = types.setdefault(name, found)
        if pa.types.is_null(was):
            types[name] = found
        elif not pa.types.is_null(found) and found != was:
            remedy = "Cast the column: all rows must have it in the type of the first ones."
            raise wrong_type(name, found, str(was), remedy)
    return types


def need_no_texts(rows: pa.Table, names: Sequence[str]) -> None:
    """Refuse texts, of which windows of updates have no aggregates."""
    for name in names:
        kind = rows.schema.field(name).type
        if is_text(kind):
            remedy = "Cast it, or leave it out: wp.count() needs no column."
            raise wrong_type(name, kind, "a number, a boolean or a time", remedy)


@dataclass(frozen=True, slots=True)
class Given:
    """Rows as the core takes them, of which nothing can be refused any more."""

    count: int
    keys: list[pa.Array]
    columns: dict[str, Column]
    places: Ints | None

    def since(self, first: int) -> Given:
        """The rows from this one on."""
        at = np.arange(first, self.count)
        columns = {name: column.take(at) for name, column in self.columns.items()}
        places = None if self.places is None else self.places[first:]
        return Given(len(at), [keys.slice(first) for keys in self.keys], columns, places)


def mask(found: Any, rows: int) -> pa.Array:
    """What a predicate gave, as an Arrow array of booleans; null is false."""
    column = found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found
    try:
        column = column if isinstance(column, pa.Array) else pa.array(np.asarray(column))
        if column.null_count == len(column):  # of no rows, and of nulls, the type says nothing
            column = pa.nulls(len(column), pa.bool_())
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise WrongType(
            f"the predicate gave {found!r} for {rows} rows. Return a boolean for each, for example with "
            "pyarrow.compute.greater(rows['price'], 3.0)."
        ) from error
    if not pa.types.is_boolean(column.type) or len(column) != rows:
        raise WrongType(f"the predicate gave {len(column)} values of {column.type} for {rows} rows. "
                        "Return a boolean for each.")  # fmt: skip
    return pc.fill_null(column, fill_value=False)
