"""Provisional rows in a database: only of windows that keep their place until they are final.

A table holds one row for each key and window, and the final answer replaces the provisional one. Where later
rows of the stream move a window, such as a session that grows, nothing would replace it, and nothing says
that it is gone: only final answers are withdrawn.
"""

from __future__ import annotations

from collections.abc import Sequence

from windowpane.jobs.document import Node
from windowpane.jobs.ends import DATABASES
from windowpane.jobs.job import QuerySpec
from windowpane.plan.nodes import WindowQuery
from windowpane.values.windows import ContextFreeWindow, Cumulative, Landmark, PerRow, Rows, Sliding, Window

_FIXED = (Sliding, Landmark, Cumulative, ContextFreeWindow)
"""Windows whose places do not depend on rows."""
_NAMES = {
    "Session": ("session", ""),
    "Rows": ("rows", "count for each key by .per(), "),
    "Delimited": ("delimited", ""),
    "PerRow": ("per_row", "take every row (every=1), "),
    "LastRows": ("last_rows", ""),
}
"""The others as a job file calls them, and what makes them steady."""


def need_steady(queries: Sequence[QuerySpec], keys: tuple[str, ...]) -> None:
    """Fail if a database would keep provisional rows of windows that are no more; `keys`: of the stream."""
    for spec in queries:
        if spec.emit != "update" or spec.sink.format not in DATABASES:
            continue
        query = WindowQuery(
            spec.name, spec.windows, spec.aggregates, keys if spec.keys is None else spec.keys
        )
        for window in spec.windows:
            if not steady(window, query):
                raise _emit(spec.node).error(_message(window, spec.sink.format))


def steady(window: Window, query: WindowQuery) -> bool:
    """Whether every provisional row of a window gets a final one with the same key, start and end."""
    match window:
        case PerRow():  # with every=2, a row in between makes others the second ones
            return window.every == 1 or window.order == "arrival"
        case Rows():  # a row in between shifts others, which may leave a window none of its key
            return window.order == "arrival" or set(query.grouping) <= set(query.partition(window))
    return isinstance(window, _FIXED)


def _emit(query: Node) -> Node:
    assert isinstance(query.value, dict)
    return query.value["emit"]


def _message(window: Window, sink: str) -> str:
    kind, remedy = _NAMES[type(window).__name__]
    return (
        f"rows that come later move the windows of {kind}, and {sink} would keep the provisional rows of "
        f"windows that are no more. Write emit: final, {remedy}or have the answers in files."
    )
