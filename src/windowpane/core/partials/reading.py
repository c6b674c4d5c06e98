"""How partials read the columns of a batch: nulls out, floats where arithmetic wants floats."""

from __future__ import annotations

from functools import reduce

import numpy as np

from windowpane.core.arrays import Bools, Floats, Ints, Tuples, Values
from windowpane.core.kernels.ordering import encode
from windowpane.core.kernels.tables import counting_order


def all_valid(tuples: Tuples, names: tuple[str, ...]) -> Bools | None:
    """Which tuples have a value in every one of these columns (None: all)."""
    masks = [m for m in (tuples.columns[name].valid for name in names) if m is not None]
    if not masks:
        return None
    mask: Bools = reduce(np.logical_and, masks)
    return None if mask.all() else mask


def present(tuples: Tuples, rows: Ints, names: tuple[str, ...]) -> tuple[Tuples, Ints]:
    """The tuples that have a value in every one of these columns, and their rows."""
    mask = all_valid(tuples, names)
    if mask is None:
        return tuples, rows
    kept = {name: tuples.columns[name] for name in names}
    return Tuples(tuples.time, tuples.key, kept).take(mask), rows[mask]


def present_values(tuples: Tuples, rows: Ints, name: str) -> tuple[Values, Ints]:
    """The values of one column that are not null, and their rows."""
    values, mask = tuples.columns[name].values, all_valid(tuples, (name,))
    return (values, rows) if mask is None else (values[mask], rows[mask])


def filled(tuples: Tuples, name: str, fill: float) -> Values:
    """The values of one column, with `fill` in the place of nulls."""
    values, mask = tuples.columns[name].values, all_valid(tuples, (name,))
    return values if mask is None else np.where(mask, values, values.dtype.type(fill))


def in_order(keys: Ints) -> bool:
    """True if the keys never fall."""
    return not bool((keys[1:] < keys[:-1]).any())


def group(rows: Ints, n_rows: int) -> Ints | None:
    """A stable order by row; None if the tuples are in order already."""
    if in_order(rows):
        return None
    if n_rows > 4 * len(rows):
        return np.argsort(rows, kind="stable")
    return counting_order(rows, n_rows)


def floats(values: Values) -> Floats:
    """Values as float64."""
    return values.astype(np.float64, copy=False)


def order_of(tuples: Tuples, name: str) -> Ints:
    """What to compare a column by: the content hash of strings, else integers in the values' order."""
    column = tuples.columns[name]
    return column.order if column.order is not None else encode(column.values)
