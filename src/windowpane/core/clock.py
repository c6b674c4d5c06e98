"""The clock of a stream: its punctuation, moved by every tuple, and the verdict on every tuple.

The verdict on a tuple depends on the tuples before it alone, never on batch boundaries, with one exception:
before any tuple, "too far ahead" is measured from where the first batch begins (see `beginning`), and never
from less than that later, so that one absurd first row, too early or too late, cannot poison the stream. A
first tuple that is alone says nothing: who holds the rows asks `begin`, and lets it wait.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

import numpy as np

from windowpane.core.arrays import ALWAYS, NEVER, Bools, Ints
from windowpane.core.beginning import first_tuples
from windowpane.core.columns import TIME_LIMIT
from windowpane.core.kernels.clock import (
    ACTIVE,
    ANCHOR,
    BOUND,
    DELAY,
    HIGH,
    IDLE,
    KEPT,
    MARKER,
    S_BOUND,
    S_COUNT,
    S_STATUS,
    SILENT,
    SLACK,
    UNSEEN,
    Codes,
    judge_melded,
    judge_one,
    none_late,
    scan,
)
from windowpane.core.verdict import Verdict
from windowpane.values.errors import BadQuery, BadState
from windowpane.values.punctuation import LONGEST, Delay, Heartbeat, Melded, Policy, Slack

_NO_MARKER: Bools = np.zeros(0, np.bool_)


class Clock:
    """The progress of one stream under a policy.

    `lateness` keeps tuples that are below the bound by at most so much; `max_ahead` rejects tuples that are
    further above the stream's progress (None: no limit). Times must lie within `TIME_LIMIT` of 0. Sources of
    a melded policy are dense ids; those of an explicit list come first.
    """

    __slots__ = ("_beat", "_clock", "_last", "_melded", "_rings", "_rule", "_since", "_sources")

    def __init__(self, policy: Policy, max_ahead: int | None = None, lateness: int = 0) -> None:
        _check(max_ahead, "max_ahead")
        _check(lateness, "lateness")
        self._beat = policy if isinstance(policy, Heartbeat) else None
        inner = policy.policy if isinstance(policy, Heartbeat) else policy
        self._melded = isinstance(inner, Melded)
        listed = 1
        if isinstance(inner, Melded):
            listed, inner = len(inner.sources), inner.policy
        kind, distance = SILENT, 0
        if isinstance(inner, Delay):
            kind, distance = DELAY, inner.delay
        elif isinstance(inner, Slack):
            kind, distance = SLACK, inner.rows
        self._rule = np.array([kind, distance, lateness, -1 if max_ahead is None else max_ahead])
        self._clock = np.full(3, NEVER)
        self._since = NEVER
        self._sources, self._rings, self._last = self._fresh(listed, ACTIVE)

    @property
    def bound(self) -> int:
        """No later tuple is below this (NEVER: nothing is promised yet)."""
        return int(self._clock[BOUND])

    @property
    def high(self) -> int:
        """The largest kept time so far; NEVER if there is none."""
        return int(self._clock[HIGH])

    @property
    def begun(self) -> bool:
        """Whether it is known what "too far ahead" is measured from, or there is no limit."""
        return bool(self._rule[3] < 0 or self._clock[ANCHOR] != NEVER or self._clock[HIGH] != NEVER)

    def begin(self, time: Ints, marker: Bools | None = None) -> int | None:
        """Find where the stream begins by its first tuples, before they are admitted.

        Gives the place of the only tuple that is not too far ahead, if there is but one and it is not near
        the bound either: nothing tells yet whether it is absurd. It is to wait, and to come again, before
        the next tuples; with them `begin` is asked once more.
        """
        if len(time) == 0:
            return None
        marks = np.zeros(len(time), np.bool_) if marker is None else marker
        start, alone = first_tuples(time[~marks], time[marks], int(self._rule[3]))
        self._clock[ANCHOR] = start
        return int(time.argmin()) if alone and not self.near(start, self.bound) else None

    def begin_anew(self) -> None:
        """Forget where the stream begins: what told it was too far ahead."""
        self._clock[ANCHOR] = NEVER

    def near(self, time: int, bound: int) -> bool:
        """Whether a time is not too far ahead of a bound."""
        return bound != NEVER and time <= bound + int(self._rule[3])

    def told(self, now: int) -> None:
        """Note the caller's clock where none is noted: a lull can have begun then, and not before."""
        self._since = now if self._since == NEVER else self._since
        self._last[self._last == NEVER] = now

    def admit(
        self, time: Ints, marker: Bools | None = None, source: Ints | None = None, now: int | None = None
    ) -> Verdict:
        """Judge the tuples of a batch in the order given, and move on.

        Where `marker` is true, the row is no data but a bound. `source` has the dense source ids of a melded
        stream. `now` is the caller's clock, for heartbeats.
        """
        if len(time) == 0:
            codes = np.zeros(0, np.uint8)
            return Verdict(codes, (0, 0, 0, 0), in_order=True, low=ALWAYS, high=NEVER, bound=self.bound)
        if marker is not None and not bool(marker.any()):
            marker = None
        if not self.begun:
            self.begin(time, marker)
        plain = marker is None and not self._melded
        verdict = self._at_once(time) if plain else None
        if verdict is None:
            verdict = self._one_by_one(time, marker, source)
        if self._beat is not None:
            self._stir(verdict.codes, source, now)
        return verdict

    def punctuate(self, bound: int) -> int:
        """Promise by hand that no later tuple is below `bound`; the bound never moves back."""
        # A bound below every possible time promises nothing, and could overflow.
        if bound > -TIME_LIMIT:
            self._clock[BOUND] = max(self.bound, min(bound, ALWAYS))
        return self.bound

    def tick(self, now: int) -> int:
        """Tell the time of the caller's clock; in a lull, a heartbeat moves the bound."""
        if self._beat is None:
            return self.bound
        status, last = self._sources[S_STATUS], self._last
        self.told(now)
        status[(status == ACTIVE) & (now - last >= self._beat.idle)] = IDLE
        active = self._sources[S_BOUND][status == ACTIVE]
        if len(active):
            return self.punctuate(int(active.min()))
        # Where no source was ever heard, the lull began with the first tick.
        if bool((status == IDLE).any()) or now - self._since >= self._beat.idle:
            return self.punctuate(now - self._beat.delay)
        return self.bound

    def end(self) -> int:
        """The stream ends: the bound is above every time."""
        return self.punctuate(ALWAYS)

    def copy(self) -> Clock:
        """A clock that stands where this one does and moves by itself."""
        other = copy(self)
        other._clock, other._last = self._clock.copy(), self._last.copy()
        other._sources, other._rings = self._sources.copy(), self._rings.copy()
        return other

    def snapshot(self) -> dict[str, Any]:
        """The state as plain lists and ints, fit for JSON."""
        return {
            "version": 1,
            "rule": self._rule.tolist(),
            "clock": self._clock.tolist(),
            "since": self._since,
            "sources": self._sources.tolist(),
            "rings": self._rings.tolist(),
            "last": self._last.tolist(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a snapshot of a clock with the same policy."""
        if state.get("version") != 1 or state.get("rule") != self._rule.tolist():
            raise BadState(
                f"the stored clock has rule {state.get('rule')}, but the query has {self._rule.tolist()} "
                "(kind, distance, lateness, max_ahead). Restart with the old punctuation."
            )
        last = np.array(state["last"], np.int64)
        self._clock = np.array(state["clock"], np.int64)
        self._since = int(state["since"])
        self._sources = np.array(state["sources"], np.int64).reshape(4, len(last))
        self._rings = np.array(state["rings"], np.int64).reshape(len(last), self._rings.shape[1])
        self._last = last

    def _fresh(self, n: int, status: int) -> tuple[Ints, Ints, Ints]:
        sources = np.full((4, n), NEVER)
        sources[S_COUNT], sources[S_STATUS] = 0, status
        width = int(self._rule[1]) if self._rule[0] == SLACK else 0
        return sources, np.full((n, max(width, 1)), NEVER), np.full(n, NEVER)

    def _at_once(self, time: Ints) -> Verdict | None:
        """The verdict if all tuples are surely kept; None if a closer look is needed."""
        low, high, rising = scan(time)
        before, lateness, max_ahead = self.bound, int(self._rule[2]), int(self._rule[3])
        if max_ahead >= 0 and high > int(self._clock.max()) + max_ahead:
            return None
        in_order = bool(rising) and low >= self.high
        reach = self._reach(time, high)
        needed = before if in_order else max(before, reach)
        if needed != NEVER and low < needed - lateness and not self._keeps_all(time, int(low), int(high)):
            return None
        self._commit(time, high, reach)
        codes = np.zeros(len(time), np.uint8)
        return Verdict(codes, (len(time), 0, 0, 0), in_order, int(low), int(high), self.bound)

    def _keeps_all(self, time: Ints, low: int, high: int) -> bool:
        """A closer look at a delay, whose bound moves within the batch."""
        kind, distance, lateness = (int(x) for x in self._rule[:3])
        if kind != DELAY or (self.bound != NEVER and low < self.bound - lateness):
            return False
        if max(high, self.high) - low >= TIME_LIMIT:
            return False  # so far apart that their distance could overflow
        top, bound = max(self.high, -TIME_LIMIT), max(self.bound, -TIME_LIMIT) - distance
        return bool(none_late(time, top, bound, distance, lateness))

    def _reach(self, time: Ints, high: int) -> int:
        """The bound of the only source after all these tuples are kept."""
        kind, n = int(self._rule[0]), int(self._rule[1])
        if kind == SILENT:
            return NEVER
        if kind == DELAY or n == 0:
            return max(self.high, int(high)) - n
        if len(time) < n:
            return int(self._rings[0, (self._sources[S_COUNT, 0] + len(time)) % n])
        return max(self.high, int(time[:-n].max(initial=NEVER)))

    def _commit(self, time: Ints, high: int, reach: int) -> None:
        kind, n = int(self._rule[0]), int(self._rule[1])
        count = int(self._sources[S_COUNT, 0]) + len(time)
        if kind == SLACK and n > 0:
            before = max(self.high, int(time[:-n].max(initial=NEVER)))
            tail = np.maximum.accumulate(np.maximum(time[-n:], before))
            self._rings[0, np.arange(count - len(tail) + 1, count + 1) % n] = tail
        top = max(self.high, int(high))
        own = max(int(self._sources[S_BOUND, 0]), reach)
        self._sources[:, 0] = (top, own, count, ACTIVE)
        self._clock[HIGH] = top
        self._clock[BOUND] = max(self.bound, own)

    def _one_by_one(self, time: Ints, marker: Bools | None, source: Ints | None) -> Verdict:
        codes = np.zeros(len(time), np.uint8)
        marks = _NO_MARKER if marker is None else marker
        rule, clock = self._rule, self._clock
        if not self._melded:
            # Views, so that the kernel moves the state itself.
            own = self._sources[:, 0]
            low, high, rising = judge_one(time, marks, rule, clock, own, self._rings[0], codes)
        elif source is None:
            raise BadQuery("the policy melds sources, but the batch has no source ids. Give `source`.")
        else:
            self._make_room(int(source.max()) + 1)
            state = self._sources, self._rings
            low, high, rising = judge_melded(time, marks, source, rule, clock, *state, codes)
        kept, late, ahead, marked = (int(n) for n in np.bincount(codes, minlength=4))
        return Verdict(codes, (kept, late, ahead, marked), bool(rising), int(low), int(high), self.bound)

    def _make_room(self, n: int) -> None:
        extra = n - len(self._last)
        if extra > 0:
            sources, rings, last = self._fresh(extra, UNSEEN)
            self._sources = np.concatenate([self._sources, sources], axis=1)
            self._rings = np.concatenate([self._rings, rings])
            self._last = np.concatenate([self._last, last])

    def _stir(self, codes: Codes, source: Ints | None, now: int | None) -> None:
        """Note when each source was last heard; without a `now`, the next tick tells."""
        heard = (codes == KEPT) | (codes == MARKER)
        if bool(heard.any()):
            at = source[heard] if self._melded and source is not None else 0
            self._last[at] = NEVER if now is None else now


def _check(length: int | None, name: str) -> None:
    if length is not None and not 0 <= length <= LONGEST:
        raise BadQuery(f"{name} is {length}. Give 0 to {LONGEST} microseconds.")
