"""Helpers for tests of windowed queries: yours and ours.

`latest` reduces a result table with revisions to the answers that stand; `assert_same_windows` compares two
result tables whatever the order of their rows; `check_algebra` tries an aggregate's algebra on a sample.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isclose, isnan
from typing import Any

import pyarrow as pa

from windowpane.core.algebra_check import check_algebra

__all__ = ["assert_same_windows", "check_algebra", "latest"]

Row = dict[str, Any]
Pair = tuple[Row | None, Row | None]
Place = tuple[Any, ...]
_PLACE = ("definition", "window")
_MOST = 10
"""Pairs that a failure shows; more are counted."""


def latest(table: pa.Table) -> pa.Table:
    """The answers of a result table that stand in the end, in their order.

    Of each key and window the row with the largest `|revision|` counts. Provisional rows (`final` is false)
    and windows that were withdrawn (the revision is negative) are left out.
    """
    rows, keys = table.to_pylist(), _keys(table.schema.names)
    places: dict[Place, int] = {}
    for at, row in enumerate(rows):
        if row.get("final") is False:
            continue
        place = _place(row, (*keys, *_PLACE))
        if place not in places or abs(row["revision"]) >= abs(rows[places[place]]["revision"]):
            places[place] = at
    kept = sorted(at for at in places.values() if rows[at]["revision"] >= 0)
    return table.take(pa.array(kept, pa.int64()))


def assert_same_windows(
    left: pa.Table | Iterable[Mapping[str, Any]],
    right: pa.Table | Iterable[Mapping[str, Any]],
    *,
    tolerance: float = 1e-9,
    ignore: Collection[str] = (),
) -> None:
    """Fail unless both sides hold the same rows, in any order; the failure shows both sides aligned.

    Floats may differ by `tolerance`, relative to the larger one and absolute below 1; NaN equals NaN. The
    order of the columns and the widths of their types do not matter. A side may be a list of dicts.
    Columns in `ignore` are left out: `latest(run.table)` of two runs over the same rows is the same but
    for the `revision`, which tells how a run came to its answer.
    """
    names, ours = _rows(left, ignore)
    others, theirs = _rows(right, ignore)
    if set(names) != set(others):
        raise AssertionError(f"the columns differ\nleft   {', '.join(names)}\nright  {', '.join(others)}")
    wrong = [
        pair
        for group in _groups(ours, theirs, (*_keys(names), *_PLACE))
        for pair in _unequal(*group, tolerance)
    ]
    if wrong:
        raise AssertionError(_report(wrong, names, len(ours), len(theirs)))


def _rows(
    side: pa.Table | Iterable[Mapping[str, Any]], ignore: Collection[str]
) -> tuple[list[str], list[Row]]:
    """The names of the columns and the rows."""
    names: list[str] = []
    if isinstance(side, pa.Table | pa.RecordBatch):
        names, side = list(side.schema.names), side.to_pylist()
    rows = [{name: value for name, value in row.items() if name not in ignore} for row in side]
    every = dict.fromkeys([*names, *(name for row in rows for name in row)])
    return [name for name in every if name not in ignore], rows


def _keys(names: Sequence[str]) -> list[str]:
    """The key columns of a result: those before the window."""
    return list(names[: names.index("window")]) if "window" in names else []


def _place(row: Row, names: Iterable[str]) -> Place:
    return tuple(_frozen(row.get(name)) for name in names)


def _frozen(value: Any) -> Any:
    """The value as something that is equal to itself and can be looked up."""
    if isinstance(value, float) and isnan(value):
        return "NaN"
    if isinstance(value, dict):
        return tuple((name, _frozen(part)) for name, part in value.items())
    return tuple(_frozen(part) for part in value) if isinstance(value, list) else value


def _groups(
    ours: list[Row], theirs: list[Row], names: Sequence[str]
) -> Iterable[tuple[list[Row], list[Row]]]:
    """The rows of both sides by key and window."""
    groups: dict[Place, tuple[list[Row], list[Row]]] = {}
    for side, rows in enumerate((ours, theirs)):
        for row in rows:
            groups.setdefault(_place(row, names), ([], []))[side].append(row)
    return groups.values()


def _unequal(left: list[Row], right: list[Row], tolerance: float) -> list[Pair]:
    """The rows of one place that have no equal on the other side, side by side."""
    ours, theirs = [], list(right)
    for row in left:
        at = next((i for i, other in enumerate(theirs) if _alike(row, other, tolerance)), None)
        if at is None:
            ours.append(row)
        else:
            del theirs[at]
    both = range(max(len(ours), len(theirs)))
    return [(_at(ours, i), _at(theirs, i)) for i in both]


def _at(rows: list[Row], i: int) -> Row | None:
    return rows[i] if i < len(rows) else None


def _alike(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_alike(a[name], b[name], tolerance) for name in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_alike(x, y, tolerance) for x, y in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float | int):
        return _near(a, float(b), tolerance)
    return _near(b, float(a), tolerance) if isinstance(b, float) and isinstance(a, int) else bool(a == b)


def _near(a: float, b: float, tolerance: float) -> bool:
    return (isnan(a) and isnan(b)) or isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)


def _report(wrong: list[Pair], names: list[str], ours: int, theirs: int) -> str:
    shown = wrong[:_MOST]
    lines = [["", *names]]
    for left, right in shown:
        lines += [["left", *_cells(left, names)], ["right", *_cells(right, names)]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names) + 1)]
    table = [
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    more = [f"and {len(wrong) - _MOST} more"] if len(wrong) > _MOST else []
    head = f"{len(wrong)} windows differ, of {ours} rows on the left and {theirs} on the right"
    return "\n".join([head, *table, *more])


def _cells(row: Row | None, names: list[str]) -> list[str]:
    return ["-"] * len(names) if row is None else [_text(name, row.get(name)) for name in names]


def _text(name: str, value: Any) -> str:
    if name == "window" and isinstance(value, dict) and value.keys() == {"start", "end"}:
        return f"{value['start']} .. {value['end']}"
    return str(value)
