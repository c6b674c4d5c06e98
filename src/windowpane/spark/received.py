"""Received: what comes for a bucket in a micro-batch, and the first one as long as it has but one row.

Before any row, nothing tells whether the time of a lone one is absurd. So its micro-batch is held back until
another row tells, or the bound comes near. Every bucket finds the same, from what all tasks saw.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from windowpane.core.arrays import NEVER
from windowpane.spark.envelope import SEEN
from windowpane.spark.progress import Progress
from windowpane.spark.seen import Run, Seen


@dataclass
class Received:
    """What came for a bucket in one micro-batch: payloads by part, and what tasks saw."""

    payloads: dict[int, list[bytes]] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)

    def add(self, parts: Iterable[int], payloads: Iterable[bytes]) -> Received:
        """Take envelopes in."""
        for part, payload in zip(parts, payloads, strict=True):
            if part == SEEN:
                self.seen.append(Seen.from_bytes(payload))
            else:
                self.payloads.setdefault(int(part), []).append(payload)
        return self

    def to_json(self) -> list[list[Any]]:
        """As plain values: each envelope's part and payload."""
        sent = [(part, payload) for part, some in self.payloads.items() for payload in some]
        sent += [(SEEN, seen.to_bytes()) for seen in self.seen]
        return [[part, b64encode(payload).decode()] for part, payload in sent]

    @classmethod
    def from_json(cls, state: Iterable[tuple[int, str]]) -> Received:
        """What `to_json` gave."""
        sent = [(part, b64decode(payload)) for part, payload in state]
        return cls().add([part for part, _ in sent], [payload for _, payload in sent])


@dataclass(frozen=True)
class Due:
    """A micro-batch that is to be taken now, and where the stream begins by what is known."""

    received: Received
    start: int


class Beginning:
    """Holds the first micro-batch back as long as the only row in it that has a place is alone."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._held: Received | None = None
        self._time = int(NEVER)

    def due(self, received: Received, *, end: bool = False) -> list[Due]:
        """What is to be taken now, in order; the last one is of this micro-batch, though it may be empty."""
        held, progress = self._held, self._progress
        if held is None and progress.begun:
            return [Due(received, progress.start)]
        seen = Seen.merged(received.seen)
        runs, marked = self._first(seen)
        if not runs and not marked:
            return [Due(received, progress.start)]
        start, alone = progress.begin(runs, marked)
        if alone and not end and not progress.nears(start, seen):
            return self._wait(received, seen, start)
        self._held = None
        if held is None:
            return [Due(received, start)]
        # by its own time it has a place alone: what else came with it was too far ahead
        return [Due(held, min(self._time, start)), Due(received, start)]

    def _first(self, seen: Seen) -> tuple[list[Run], list[Run]]:
        """The runs of rows and of markers, the one that waits among them."""
        if self._held is None:
            return seen.runs, seen.marked
        waits: list[Run] = [("", self._time, self._time, 1)]
        marks = any(low == self._time for some in self._held.seen for _, low, _, _ in some.marked)
        return (seen.runs, waits + seen.marked) if marks else (waits + seen.runs, seen.marked)

    def _wait(self, received: Received, seen: Seen, start: int) -> list[Due]:
        """Hold what has the lone row; the other rows, if there are, are too far ahead of it."""
        if self._held is not None and self._time == start:
            return [Due(received, start)]
        # an error of the micro-batch that brought it, and not of the one that confirms it
        self._progress.need_listed(run[0] for run in (*seen.runs, *seen.marked) if run[1] == start)
        absurd = [] if self._held is None else [Due(self._held, start)]
        self._held, self._time = received, start
        return [*absurd, Due(Received(seen=[Seen(bound=seen.bound, now=seen.now)]), start)]

    def to_json(self) -> dict[str, Any]:
        """What is stored of it: nothing, unless a row waits."""
        return {} if self._held is None else {"first": self._held.to_json(), "first time": self._time}

    def restore(self, header: Mapping[str, Any]) -> None:
        """Go on from a header that has what `to_json` gave."""
        if "first" in header:
            self._held, self._time = Received.from_json(header["first"]), int(header["first time"])
