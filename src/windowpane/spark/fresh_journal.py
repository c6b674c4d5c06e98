"""What is stored of many keys of which few change: chunks of all keys, and a journal of those that changed.

Keys that change lie in all chunks, so that to write the chunks of some is to write nearly all. What changed
between two stores is an entry of the journal instead, and each store rewrites the next chunks in turn, twice
as many keys as changed. An entry goes when every chunk is newer, so the journal never has many more than half
of the keys. Another worker, which has an older state, reads the entries since then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np

from windowpane.core.arrays import Ints

CHUNK = 8192
"""Keys in a chunk."""
_RUN, _MOST, _LIKE = 8, 2, 2
"""So many entries become one, of so many chunks at most, if none has so many times as many keys as the last.
"""
_TOKENS = 64
"""Stores of which it is known whether a state is that of then."""


@dataclass
class Journal:
    """When each chunk was written (0: never) and which keys each entry has, by the number of the store.

    Entries tell all that changed after the store `complete`. `tokens` names the last stores: two states of
    one number are not the same where an attempt failed.
    """

    now: int = 0
    written: list[int] = field(default_factory=list)
    entries: dict[int, Ints] = field(default_factory=dict)
    complete: int = 0
    hand: int = 0
    due: int = 0
    tokens: dict[int, str] = field(default_factory=dict)

    def turn(self, keys: int, changed: Ints, *, anew: bool = False) -> list[int]:
        """Count a store; the chunks that it writes, beside the entry of `now` if there is one.

        `changed` has ids in rising order. Where much changed, or with `anew`, all chunks are written.
        """
        self.now += 1
        self.tokens[self.now] = uuid4().hex
        self.tokens.pop(self.now - _TOKENS, None)
        chunks = -(-keys // CHUNK)
        if anew:  # keys may have other places, so that no earlier state leads to this one
            self.tokens = {self.now: self.tokens[self.now]}
        if anew or 2 * len(changed) > keys:
            self.written, self.entries, self.hand, self.due = [self.now] * chunks, {}, 0, 0
            self.complete = self.now
            return list(range(chunks))
        if not len(changed):
            return []
        self.written += [0] * (chunks - len(self.written))
        self.due += 2 * len(changed)
        self._add(changed)
        turned = []
        while (size := min(CHUNK, keys - self.hand * CHUNK)) <= self.due:
            turned.append(self.hand)
            self.written[self.hand] = self.now
            self.due -= size
            self.hand = (self.hand + 1) % chunks
        self.complete = max(self.complete, min(self.written))
        self.entries = {at: ids for at, ids in self.entries.items() if at > self.complete}
        return sorted(set(turned))

    def _add(self, changed: Ints) -> None:
        """An entry. Where there are several of like size they become one, so that they stay few."""
        ids = changed
        while len(run := self._like(len(ids))) >= _RUN - 1:
            ids = np.unique(np.concatenate([ids, *(self.entries.pop(at) for at in run)]))
        self.entries[self.now] = ids

    def _like(self, size: int) -> list[int]:
        """The last entries up to one that is much larger; none where one of all would be too large."""
        run = []
        for at in sorted(self.entries, reverse=True):
            if len(self.entries[at]) >= _LIKE * size:
                break
            run.append(at)
        return run if sum(len(self.entries[at]) for at in run) + size <= _MOST * CHUNK else []

    def leads_to(self, header: Mapping[str, Any]) -> bool:
        """Whether a stored state went on from this one, with the same keys in the same places."""
        token = self.tokens.get(self.now)
        return token is not None and [self.now, token] in header["tokens"]

    def to_json(self) -> dict[str, Any]:
        """What is stored; the ids of an entry are in its block."""
        return {
            "now": self.now,
            "written": self.written,
            "entries": sorted(self.entries),
            "complete": self.complete,
            "hand": self.hand,
            "due": self.due,
            "tokens": [[at, token] for at, token in self.tokens.items()],
        }

    @classmethod
    def of(cls, header: Mapping[str, Any], entries: Mapping[int, Ints]) -> Journal:
        """The journal that `to_json` was called on."""
        parts = {name: header[name] for name in ("now", "written", "complete", "hand", "due")}
        return cls(**parts, entries=dict(entries), tokens=dict(header["tokens"]))


def ids_of(chunk: int, keys: int) -> Ints:
    """The keys of a chunk."""
    return np.arange(chunk * CHUNK, min(keys, (chunk + 1) * CHUNK))
