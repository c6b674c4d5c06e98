"""Checks of what a user says of a stream: names, lengths, and the types of its columns."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from windowpane.core.hashing import hashable
from windowpane.plan.nodes import Stream
from windowpane.values.durations import Duration, microseconds
from windowpane.values.errors import BadQuery, wrong_type
from windowpane.values.punctuation import LONGEST, Heartbeat, Melded, Slack, marker_of


def check_names(columns: list[str]) -> None:
    """No column twice."""
    for column in columns:
        if columns.count(column) > 1:
            raise BadQuery(f"the rows have two columns {column!r}. Rename one of them first.")


def names(columns: str | Iterable[str], what: str = "keys") -> tuple[str, ...]:
    """Columns such as the keys, of which one may be given by its name alone."""
    if not isinstance(columns, Iterable):
        raise BadQuery(
            f"{what} is {columns!r}. Give the name of a column or a list of names; none: {what}=()."
        )
    found = (columns,) if isinstance(columns, str) else tuple(columns)
    for name in found:
        if found.count(name) > 1:
            raise BadQuery(f"{what} names {name!r} twice. Name each column once.")
    return found


def length(name: str, duration: Duration) -> int:
    """A length of time in microseconds, within what the arithmetic of bounds allows."""
    found = microseconds(duration)
    if not 0 <= found <= LONGEST:
        raise BadQuery(f"{name} is {found}. Give 0 to {LONGEST} microseconds.")
    return found


def is_measure(node: Stream) -> bool:
    """Whether the stream progresses on an integer measure."""
    return bool(pa.types.is_integer(node.type(node.time)))


def check_types(node: Stream) -> None:
    """The time must be a time, ties integers, punctuation markers booleans, keys and ids plain values."""
    _check_time(node)
    marker = marker_of(node.policy)
    if marker is not None and not pa.types.is_boolean(node.type(marker)):
        remedy = "Compare it first, for example with pyarrow.compute.equal."
        raise wrong_type(marker, node.type(marker), "a boolean for external()", remedy)
    check_keys(node, node.keys)
    _check_ids(node)
    if node.ties is not None and not pa.types.is_integer(node.type(node.ties)):
        remedy = "Cast the column, or leave `ties` out: then the content of tuples orders equal times."
        raise wrong_type(node.ties, node.type(node.ties), "an integer for ties", remedy)


def check_keys(node: Stream, keys: tuple[str, ...], article: str = "a", what: str = "key") -> None:
    """Keys must be plain values."""
    for key in keys:
        if not hashable(node.type(key)):
            remedy = f"Use one field of it as the {what}, or turn it into text first."
            raise wrong_type(key, node.type(key), f"{article} {what} of plain values", remedy)


def _check_ids(node: Stream) -> None:
    """Ids must be plain values, and duplicates must not move the punctuation."""
    check_keys(node, node.ids, "an", "id")
    policy = node.policy
    while isinstance(policy, Heartbeat | Melded):
        policy = policy.policy
    if node.ids and isinstance(policy, Slack):
        raise BadQuery(
            f"ids is {', '.join(node.ids)}, but slack({policy.rows}) counts rows, so that duplicates would "
            "move the punctuation. Use a delay, or leave ids out."
        )


def _check_time(node: Stream) -> None:
    kind = node.type(node.time)
    if not (pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_integer(kind)):
        raise wrong_type(
            node.time,
            kind,
            "a time (timestamp, date or integer)",
            "Parse it first, for example with pyarrow.compute.strptime, or name another column.",
        )
