"""The answer of a whole query, window by window."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.oracle.aggregates import Item, aggregate, natural
from tests.oracle.closing import closed
from windowpane.values.semantics import Tuple, meaning
from windowpane.values.windows import OWN_KEYS, ContextAwareWindow, Delimited, Window

Row = Mapping[str, Any]
Answer = dict[tuple[tuple[Any, ...], int | None, int], dict[str, Any]]


@dataclass(frozen=True)
class OracleQuery:
    """What to compute: `aggregates` maps a result name to (function, *arguments).

    A window with `on` is measured by that column instead of `time`, also in the order of its tuples.
    `order` sorts values where an aggregate breaks a tie by value (the engine sorts strings by a hash).
    """

    window: Window
    aggregates: Mapping[str, tuple[Any, ...]]
    keys: tuple[str, ...] = ()
    time: str = "ts"
    ties: str | None = None
    order: Callable[[Any], Any] = natural

    @property
    def partition(self) -> tuple[str, ...]:
        """The columns that the window's `.per` names; empty without one."""
        columns = getattr(self.window, "partition", ())
        return self.keys if columns == OWN_KEYS else columns

    @property
    def result_keys(self) -> tuple[str, ...]:
        """The key columns of a result: the query's, then those of the partition that are not among them."""
        return self.keys + tuple(c for c in self.partition if c not in self.keys)

    @property
    def read(self) -> tuple[str, ...]:
        """The columns that the window itself looks at."""
        if isinstance(self.window, Delimited):
            return tuple(c for c in (self.window.start, self.window.end) if c)
        return self.window.columns if isinstance(self.window, ContextAwareWindow) else ()


def tuples_of(query: OracleQuery, rows: Sequence[Row]) -> list[Tuple]:
    """The rows, in arrival order, as the tuples of the semantics."""
    measure = getattr(query.window, "on", None) or query.time
    return [
        Tuple(
            time=row[measure],
            arrival=i,
            tie=0 if query.ties is None else natural(row[query.ties]),
            partition=_pick(row, query.partition),
            key=_pick(row, query.keys),
            marks={name: row[name] for name in query.read},
            row=i,
        )
        for i, row in enumerate(rows)
    ]


def _pick(row: Row, columns: Sequence[str]) -> tuple[Any, ...]:
    return tuple(row[c] for c in columns)


def answer(
    query: OracleQuery, rows: Sequence[Row], closed_by: int | None = None, upto: int | None = None
) -> Answer:
    """Map (result key, start, end) to the aggregates, for every window and group that holds a tuple.

    Without `closed_by` the stream is drained: open windows are reported too, and landmark and last-rows
    windows up to the first that has seen all tuples, or up to `upto` (the last punctuation) if that is
    later. With `closed_by`, only the windows that this punctuation closes.
    """
    tuples = tuples_of(query, rows)
    means = meaning(query.window, tuples, upto if closed_by is None else closed_by)
    found: Answer = {}
    for wid in means.windows():
        if closed_by is not None and not closed(means, wid, closed_by):
            continue
        start, end = means.bounds(wid)
        for key, items in _groups(query, means.extent(wid), rows).items():
            assert (key, start, end) not in found, "two windows would report under one name"
            found[key, start, end] = {
                name: aggregate(items, *spec, order=query.order) for name, spec in query.aggregates.items()
            }
    return found


def _groups(
    query: OracleQuery, held: Sequence[Tuple], rows: Sequence[Row]
) -> dict[tuple[Any, ...], list[Item]]:
    groups: dict[tuple[Any, ...], list[Item]] = {}
    for t in held:
        groups.setdefault(_pick(rows[t.row], query.result_keys), []).append(Item(t, rows[t.row]))
    return groups
