"""Zones: in which time zone Arrow shows instants. It is no part of their values, but of their types.

Spark hands rows over in the session's time zone, which may be another after a restart.
"""

from __future__ import annotations

import pyarrow as pa

UTC = "UTC"


def in_zone(rows: pa.Table, zone: str) -> pa.Table:
    """The same rows, their instants shown in a time zone; times that have none stay without."""
    shown = pa.schema([field.with_type(_shown(field.type, zone)) for field in rows.schema])
    return rows if shown == rows.schema else rows.cast(shown)


def _shown(kind: pa.DataType, zone: str) -> pa.DataType:
    t = pa.types
    if t.is_timestamp(kind):
        return kind if kind.tz is None else pa.timestamp(kind.unit, zone)
    if t.is_struct(kind):
        return pa.struct([_inner(field, zone) for field in kind])
    if t.is_list(kind):
        return pa.list_(_inner(kind.value_field, zone))
    if t.is_map(kind):
        return pa.map_(_inner(kind.key_field, zone), _inner(kind.item_field, zone))
    return kind


def _inner(field: pa.Field, zone: str) -> pa.Field:
    return field.with_type(_shown(field.type, zone))
