"""Rows that are served as the frame that a function takes, and the frame that it gives as an Arrow table."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa

from windowpane.spark.queue_spec import QueueSpec
from windowpane.spark.zones import in_zone
from windowpane.values.errors import WrongType

_EXACT = {
    pa.bool_(): pd.BooleanDtype(),
    **{getattr(pa, f"int{bits}")(): getattr(pd, f"Int{bits}Dtype")() for bits in (8, 16, 32, 64)},
    **{getattr(pa, f"uint{bits}")(): getattr(pd, f"UInt{bits}Dtype")() for bits in (8, 16, 32, 64)},
}
"""Dtypes that hold nulls beside all values; else one null makes floats of integers, no longer exact."""
_EXACT_KEY = {**_EXACT, pa.float32(): pd.Float32Dtype(), pa.float64(): pd.Float64Dtype()}
"""Of keys: NaN and null are two keys."""


def frame_of(spec: QueueSpec, rows: pa.Table) -> pd.DataFrame:
    """The rows for the function, which may change them; dtypes are the same in every call, whatever comes."""
    rows = in_zone(rows, spec.zone)
    return pd.DataFrame({name: _series(spec, name, rows[name]) for name in rows.column_names})


def _series(spec: QueueSpec, name: str, column: pa.ChunkedArray) -> pd.Series:
    if name == spec.time or name in spec.required:  # such rows are rejects where they have a null
        return column.to_pandas()
    # Within lists, structs and maps there are no dtypes: beside nulls integers are objects, not floats.
    kinds = (_EXACT_KEY if name in spec.keys else _EXACT).get
    return column.to_pandas(types_mapper=kinds, integer_object_nulls=True)


def table_of(spec: QueueSpec, made: object) -> pa.Table:
    """What the function gave, with the columns and types that were declared."""
    if not isinstance(made, pd.DataFrame):
        found = type(made).__name__
        raise WrongType(f"the function of {spec.name!r} gave a {found}. Return a pandas DataFrame.")
    return pa.Table.from_arrays([_column(spec, made, f) for f in spec.schema], schema=spec.schema)


def _column(spec: QueueSpec, made: pd.DataFrame, declared: pa.Field) -> Any:
    name, kind = declared.name, declared.type
    gave = f"the function of {spec.name!r} gave"
    if name not in made.columns:
        raise WrongType(f"{gave} no column {name!r}. Return one, or leave it out of the schema of apply().")
    column = made[name]
    if isinstance(column, pd.DataFrame):
        raise WrongType(f"{gave} two columns {name!r}. Return one of that name.")
    remedy = "Return such values, or declare another type in the schema of apply()."
    try:
        found = pa.Array.from_pandas(_instants(column, kind, spec.zone), type=kind)
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as error:
        raise WrongType(f"{gave} in column {name!r} what is no {kind}: {error}. {remedy}") from error
    if found.null_count and not declared.nullable:
        raise WrongType(f"{gave} nulls in column {name!r}, which is declared to have none. {remedy}")
    return found


def _instants(column: pd.Series, kind: pa.DataType, zone: str) -> pd.Series:
    """Times without a zone where instants are declared: they are in the session's time zone, as in Spark."""
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        return column
    found = column.dtype.pyarrow_dtype if isinstance(column.dtype, pd.ArrowDtype) else None
    if found is not None and pa.types.is_timestamp(found) and found.tz is None:
        column = column.astype(f"datetime64[{found.unit}]")
    if pd.api.types.is_datetime64_dtype(column.dtype):
        # As Spark does, the hour that comes twice in autumn is the second.
        return column.dt.tz_localize(zone, ambiguous=False, nonexistent="shift_forward")
    return column.map(partial(_instant, zone=zone)) if column.dtype == object else column


def _instant(value: Any, zone: str) -> Any:
    if not isinstance(value, datetime) or value is pd.NaT or value.tzinfo is not None:
        return value
    return pd.Timestamp(value).tz_localize(zone, ambiguous=False, nonexistent="shift_forward")
