"""Punctuation policies: how a stream promises that no later tuple is below a bound.

A policy is a small frozen value. Punctuation is data of the stream, not a setting of the engine: the
bound moves with every tuple, and the answer of a query depends on the tuples and their punctuation alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import UnionType

from windowpane.values.durations import Duration, microseconds
from windowpane.values.errors import BadQuery

LONGEST = 2**61
"""The longest delay, slack or lateness: beyond it the arithmetic of bounds would leave int64."""


@dataclass(frozen=True, slots=True)
class Delay:
    """The bound is the largest time so far minus `delay`."""

    delay: int

    def __post_init__(self) -> None:
        _within(self.delay, "delay")


@dataclass(frozen=True, slots=True)
class Slack:
    """The bound is the largest time among all but the last `rows` tuples."""

    rows: int

    def __post_init__(self) -> None:
        rows: object = self.rows
        if not isinstance(rows, int) or not 0 <= rows <= 1_000_000:
            raise BadQuery(f"slack of {self.rows!r} rows. Give 0 to 1,000,000 rows, or use a delay.")


@dataclass(frozen=True, slots=True)
class External:
    """The source says so itself: a row where `column` is true is no data, its time is a bound."""

    column: str


@dataclass(frozen=True, slots=True)
class Manual:
    """The bound moves only by hand."""


Single = Delay | Slack | External | Manual


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """As `policy`; after `idle` without a tuple the clock moves the bound to now minus `delay`."""

    idle: int
    delay: int
    policy: Single | Melded

    def __post_init__(self) -> None:
        _within(self.idle, "idle")
        _within(self.delay, "delay")
        if self.idle == 0:
            raise BadQuery("heartbeat: idle is 0. Give the time without tuples before the clock takes over.")
        need_policy("heartbeat: policy", self.policy, Single | Melded)


@dataclass(frozen=True, slots=True)
class Melded:
    """Each source has its own progress by `policy`; the bound is the smallest of them."""

    source: str
    policy: Single
    sources: tuple[object, ...] = ()

    def __post_init__(self) -> None:
        need_policy("melded: policy", self.policy, Single)


Policy = Single | Heartbeat | Melded


def ordered() -> Delay:
    """Tuples come in order of time: the bound is the largest time so far. Equal times are in order.

    >>> ordered()
    Delay(delay=0)
    """
    return Delay(0)


def delay(duration: Duration) -> Delay:
    """Tuples are at most `duration` out of order: the bound is the largest time so far minus it.

    >>> delay("10 s")
    Delay(delay=10000000)
    """
    return Delay(microseconds(duration))


def slack(rows: int) -> Slack:
    """Tuples are overtaken by at most `rows` others: the bound is the largest time of all but these.

    >>> slack(100)
    Slack(rows=100)
    """
    return Slack(rows)


def external(column: str) -> External:
    """The source sends bounds: where `column` is true, the row is no data and its time is a bound.

    A router's end-of-flush marker is such a row: no later tuple is below its time.
    """
    return External(column)


def manual() -> Manual:
    """The bound moves only when the caller punctuates by hand, and at the end of the stream."""
    return Manual()


def heartbeat(idle: Duration, delay: Duration = 0, policy: Single | Melded | None = None) -> Heartbeat:
    """Let the clock take over in a lull: after `idle` without a tuple, the bound is now minus `delay`.

    While tuples come, `policy` holds (by default `delay(delay)`). Under a melded policy a source that is idle
    for so long stops holding back the others.

    >>> heartbeat("30 s", delay="5 s")
    Heartbeat(idle=30000000, delay=5000000, policy=Delay(delay=5000000))
    """
    behind = microseconds(delay)
    return Heartbeat(microseconds(idle), behind, Delay(behind) if policy is None else policy)


def melded(
    source_column: str, policy: Single | Heartbeat, sources: Sequence[object] | None = None
) -> Melded | Heartbeat:
    """Several sources in one stream: each distinct value of `source_column` has a progress of its own.

    The bound is the minimum over the sources seen so far. A list of `sources` holds the bound back until
    each of them has been seen. With a heartbeat inside, an idle source stops holding back the bound.

    >>> melded("router", delay("1 s"), sources=["a", "b"])
    Melded(source='router', policy=Delay(delay=1000000), sources=('a', 'b'))
    """
    if isinstance(sources, str):
        raise BadQuery(f"melded: sources is {sources!r}. Give a list of the values of {source_column!r}.")
    if isinstance(policy, Heartbeat):
        return replace(policy, policy=_melded(source_column, policy.policy, sources))
    return _melded(source_column, policy, sources)


def _melded(source_column: str, policy: Single | Melded, sources: Sequence[object] | None) -> Melded:
    if isinstance(policy, Melded):
        raise BadQuery(f"{source_column!r} melds a melded policy. Meld by one column only.")
    return Melded(source_column, policy, tuple(sources or ()))


def marker_of(policy: Policy) -> str | None:
    """The column that says which rows are bounds, where the source sends them."""
    while isinstance(policy, Heartbeat | Melded):
        policy = policy.policy
    return policy.column if isinstance(policy, External) else None


def need_policy(what: str, given: object, kinds: UnionType = Policy) -> None:
    """An error if something else than a policy is given."""
    if not isinstance(given, kinds):
        raise BadQuery(
            f"{what} is {given!r}, which is no policy for this. "
            "Give one made by ordered(), delay('2 s'), slack(100), external('column') or manual()."
        )


def _within(length: int, name: str) -> None:
    if not 0 <= length <= LONGEST:
        raise BadQuery(f"punctuation: {name} is {length} microseconds. Give 0 to {LONGEST}.")
