"""From Arrow to the core's columns: no copy where the layout allows, a clear error for other types."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from windowpane.core.arrays import NEVER, Bools, Column, Floats, Ints, Values
from windowpane.values.errors import BadQuery, Overflow, WrongType, wrong_type

if TYPE_CHECKING:
    from windowpane.core.interner import Interner

Array = Any
"""A `pa.Array` or `pa.ChunkedArray`; pyarrow's own types are not generic enough to say more."""

TIME_LIMIT = 2**62
"""Times beyond this (146,000 years from 1970) cannot be placed: window arithmetic could overflow."""
_DAY = 86_400_000_000
_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": -1_000}
"""Microseconds per unit; negative: units per microsecond."""
_INT64 = np.iinfo(np.int64)
_INDEX_BITS = 32


def flat(array: Array) -> pa.Array:
    """The column as one plain array: no chunks, extensions, views or runs; a dictionary stays one."""
    if isinstance(array, pa.ChunkedArray):
        array = _one_chunk(array)
    if isinstance(array.type, pa.BaseExtensionType):
        return flat(array.storage)
    if pa.types.is_run_end_encoded(array.type):
        return flat(pc.run_end_decode(array))
    if pa.types.is_string_view(array.type):
        return array.cast(pa.large_string())
    if pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())
    return _flat_dictionary(array) if pa.types.is_dictionary(array.type) else array


def _flat_dictionary(array: pa.DictionaryArray) -> pa.Array:
    values = flat(array.dictionary)
    if values.type != array.dictionary.type:
        array = pa.DictionaryArray.from_arrays(array.indices, values)
    # A null among the values is one more kind of null that nothing below should have to think of.
    return array.dictionary_decode() if values.null_count else array


def _one_chunk(array: pa.ChunkedArray) -> pa.Array:
    if array.num_chunks == 1:
        return array.chunk(0)
    if array.num_chunks == 0:
        return pa.array([], array.type)
    if array.nbytes >= 2**31 and (pa.types.is_string(array.type) or pa.types.is_binary(array.type)):
        # 32-bit offsets cannot address one chunk of this size.
        array = array.cast(pa.large_string() if pa.types.is_string(array.type) else pa.large_binary())
    wide = widely_indexed(array.type)
    return pa.concat_arrays((array if array.type == wide else array.cast(wide)).unify_dictionaries().chunks)


def widely_indexed(kind: pa.DataType) -> pa.DataType:
    """The type, a dictionary with an index for the values of many: pandas has 8 bits where few are in one."""
    if not pa.types.is_dictionary(kind) or kind.index_type.bit_width >= _INDEX_BITS:
        return kind
    return pa.dictionary(pa.int32(), kind.value_type, kind.ordered)


def is_text(kind: pa.DataType) -> bool:
    """Whether values are byte strings of any length, in any of Arrow's layouts."""
    t = pa.types
    if t.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(
        t.is_string(kind) or t.is_large_string(kind) or t.is_binary(kind) or t.is_large_binary(kind)
        or t.is_string_view(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind)
    )  # fmt: skip


def valid_mask(array: pa.Array) -> Bools | None:
    """Which rows are not null; None if all are not."""
    if array.null_count == 0:
        return None
    mask: Bools = array.is_valid().to_numpy(zero_copy_only=False)
    return mask


def raw_values(array: pa.Array, dtype: npt.DTypeLike) -> Values:
    """A view of the data buffer of a fixed-width array; rows that are null hold anything."""
    data = array.buffers()[1]
    if data is None or len(array) == 0:
        return np.zeros(len(array), dtype)
    return np.frombuffer(data, dtype, count=array.offset + len(array))[array.offset :]


def scale_of(kind: pa.DataType) -> int | None:
    """Microseconds per unit of a temporal type (negative: units per microsecond); None for other types."""
    t = pa.types
    if t.is_timestamp(kind) or t.is_duration(kind) or t.is_time(kind):
        return _UNIT[kind.unit]
    if t.is_date32(kind):
        return _DAY
    return 1_000 if t.is_date64(kind) else None


def microseconds(array: pa.Array) -> tuple[Ints, Bools | None]:
    """A temporal array as int64 microseconds, and which rows overflow them (None: no row).

    Nanoseconds are floored, so that times before 1970 land in the right microsecond. Rows that
    overflow keep their raw number.
    """
    scale = scale_of(array.type) or 1
    raw = raw_values(array, np.int32 if array.type.bit_width == 32 else np.int64)
    if scale < 0:
        return raw // np.int64(-scale), None
    wide: Ints = raw.astype(np.int64, copy=False)
    if scale == 1 or len(wide) == 0:
        return wide, None
    limit = int(_INT64.max) // scale
    if int(wide.max()) <= limit and int(wide.min()) >= -limit:
        return wide * np.int64(scale), None
    beyond = (wide > limit) | (wide < -limit)
    return np.where(beyond, wide, np.where(beyond, 0, wide) * np.int64(scale)), beyond


def integers(array: pa.Array) -> Values:
    """An integer, boolean or null array as its own or a wider integer dtype (uint64 stays uint64)."""
    if pa.types.is_null(array.type):
        return np.zeros(len(array), np.int64)
    if pa.types.is_boolean(array.type):
        array = array.cast(pa.int8())
    raw = raw_values(array, array.type.to_pandas_dtype())
    return raw if raw.dtype == np.uint64 else raw.astype(np.int64, copy=False)


def floats(array: pa.Array) -> Floats:
    """A float array of any width as float64."""
    # Widening a signalling NaN counts as invalid, but a NaN is what comes out.
    with np.errstate(invalid="ignore"):
        return raw_values(array, array.type.to_pandas_dtype()).astype(np.float64, copy=False)


def is_integral(kind: pa.DataType) -> bool:
    """Whether `integers` reads this type."""
    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind))


def read_column(array: Array, name: str, interner: Interner | None = None) -> Column:
    """One value column for the aggregates. Text needs an interner; all temporal types become microseconds."""
    array = flat(array)
    if is_text(array.type):
        if interner is None:
            remedy = "Cast the column, or use count, first or last."
            raise wrong_type(name, array.type, "a number or a time", remedy)
        ids, order = interner.encode(array)
        return Column(ids, valid_mask(array), order)
    if pa.types.is_dictionary(array.type):
        return read_column(array.dictionary_decode(), name, interner)
    return Column(_numbers(array, name), valid_mask(array))


def read_ties(array: Array, name: str) -> Ints:
    """The column that orders rows of equal time; nulls come first."""
    column = read_column(array, name)
    values: Ints = column.values.astype(np.int64)
    return values if column.valid is None else np.where(column.valid, values, NEVER)


def _numbers(array: pa.Array, name: str) -> Values:
    if is_integral(array.type):
        return _signed(array, name)
    if pa.types.is_floating(array.type):
        return floats(array)
    if scale_of(array.type) is not None:
        return _instants(array, name)
    if pa.types.is_decimal(array.type):
        remedy = "Cast it to float64, or multiply by a power of ten and cast to int64 to stay exact."
        raise wrong_type(name, array.type, "an integer, float, time or text", remedy)
    remedy = "Select one field or element of it as a column of its own."
    raise wrong_type(name, array.type, "an integer, float, time or text", remedy)


def _signed(array: pa.Array, name: str) -> Ints:
    raw = integers(array)
    if raw.dtype != np.uint64:
        return raw
    at = _first(raw > np.uint64(_INT64.max), valid_mask(array))
    if at is not None:
        raise WrongType(
            f"column {name!r} holds {int(raw[at])} (uint64), which is above the largest int64 {_INT64.max}. "
            "Cast it to float64 or to text, or subtract an offset first."
        )
    return raw.view(np.int64)


def _instants(array: pa.Array, name: str) -> Ints:
    values, beyond = microseconds(array)
    at = None if beyond is None else _first(beyond, valid_mask(array))
    if at is not None:
        raise Overflow(
            f"column {name!r} holds {int(values[at])} ({array.type}), which overflows int64 microseconds. "
            "Filter such rows out, or cast the column to int64 to keep its own unit."
        )
    return values


def _first(mask: Bools, valid: Bools | None) -> int | None:
    if valid is not None:
        mask = mask & valid
    return int(mask.argmax()) if bool(mask.any()) else None


def read_time(array: Array, name: str) -> tuple[Ints, Bools | None, Bools | None]:
    """The progressing attribute: int64 values, which are valid (None: all), which have no place (None: none).

    Timestamps and dates become microseconds; integers are a measure of their own. A value is bad if
    its microseconds overflow or lie beyond `TIME_LIMIT`; null rows are never bad.
    """
    array = flat(array)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        values, beyond = microseconds(array)
    elif pa.types.is_integer(kind):
        values, beyond = _measure(integers(array))
    else:
        remedy = "Convert it first, for example with pyarrow.compute.strptime, to_timestamp or a cast."
        raise wrong_type(name, kind, "a time column must be timestamp, date or integer: one of these", remedy)
    valid = valid_mask(array)
    bad = _unplaceable(values, beyond)
    if bad is not None and valid is not None:
        bad &= valid
    return values, valid, bad


def usable_time(array: Array, name: str) -> Ints:
    """The progressing attribute where every row must have one."""
    time, valid, bad = read_time(array, name)
    if (valid is not None and not valid.all()) or (bad is not None and bad.any()):
        raise BadQuery(f"column {name!r} has rows without a usable time. Filter them out.")
    return time


def _measure(raw: Values) -> tuple[Ints, Bools | None]:
    if raw.dtype != np.uint64:
        return raw, None
    beyond = raw > np.uint64(_INT64.max)
    return raw.view(np.int64), beyond if bool(beyond.any()) else None


def _unplaceable(values: Ints, beyond: Bools | None) -> Bools | None:
    if len(values) == 0 or (beyond is None and values.max() <= TIME_LIMIT and values.min() >= -TIME_LIMIT):
        return None
    far: Bools = (values > TIME_LIMIT) | (values < -TIME_LIMIT)
    return far if beyond is None else far | beyond


def to_batches(source: object) -> Iterator[pa.RecordBatch]:
    """Arrow batches of whatever a user holds.

    Takes tables, batches, readers, pandas and Polars frames, anything with Arrow's stream interface,
    a dict of lists, and iterables of these. A table without rows gives one empty batch, so that its
    schema is seen.
    """
    if isinstance(source, pa.RecordBatch):
        yield _without_views(source)
    elif isinstance(source, pa.Table):
        yield from map(
            _without_views, source.to_batches() or [pa.RecordBatch.from_pylist([], schema=source.schema)]
        )
    elif isinstance(source, pa.RecordBatchReader):
        yield from map(_without_views, source)
    elif _is_frame(source, "pandas"):
        yield from to_batches(_table(lambda: pa.Table.from_pandas(source, preserve_index=False)))
    elif hasattr(source, "__arrow_c_stream__"):
        yield from to_batches(pa.table(source))
    elif isinstance(source, Mapping):
        yield from to_batches(_table(lambda: pa.table(dict(source))))
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes):
        for part in source:
            yield from to_batches(part)
    else:
        raise WrongType(
            f"{type(source).__name__} is no stream of rows. "
            "Give a pyarrow Table, RecordBatch or reader, a pandas or Polars DataFrame, or a dict of lists."
        )


def without_views(schema: pa.Schema) -> pa.Schema:
    """The schema with view types (Polars has them) as large ones, which every Arrow function can take."""
    return pa.schema([field.with_type(_without_view(field.type)) for field in schema])


def _without_view(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _without_view(kind.value_type), kind.ordered)
    large = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return large.get(kind, kind)


def _without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    if all(_without_view(kind) == kind for kind in batch.schema.types):
        return batch
    return batch.cast(without_views(batch.schema))


def _is_frame(source: object, module: str) -> bool:
    # Only a library that the user has imported can have made the frame; importing it here costs everyone.
    library = sys.modules.get(module)
    return library is not None and isinstance(source, getattr(library, "DataFrame", ()))


def _table(build: Any) -> pa.Table:
    try:
        return build()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise WrongType(
            f"the rows do not form columns of one type each: {error}. "
            "Give every column one type; for a list of dicts use pyarrow.Table.from_pylist."
        ) from error
