"""The state of an update queue between micro-batches: what changed is written, and read by other workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from windowpane.core.arrays import Ints
from windowpane.core.lane_blocks import Blocks
from windowpane.spark.fresh_blocks import BlockWriter, Contents, read_contents
from windowpane.spark.fresh_journal import Journal


@dataclass
class Store:
    """What the blocks of one queue hold, and which keys changed since they were written.

    `whole` is the store at which the line was last written whole.
    """

    journal: Journal = field(default_factory=Journal)
    digests: dict[str, str] = field(default_factory=dict)
    keys: int = 0
    came: int = 0
    whole: int = 0
    columns: dict[str, str] = field(default_factory=dict)
    _changed: list[Ints] = field(default_factory=list)
    _anew: bool = True
    _other_line: bool = True

    def note(self, ids: Ints) -> None:
        """These keys changed."""
        self._changed.append(ids)

    def anew(self) -> None:
        """All changed."""
        self._anew = True

    def rearranged(self) -> None:
        """Something was taken out of the middle of the line."""
        self._other_line = True

    def write(self, label: str, blocks: Blocks, given: Contents) -> dict[str, Any]:
        """Put all blocks; the header to read them by."""
        columns = {name: array.dtype.str for name, array in given.known.items()}
        anew = self._anew or columns != self.columns
        changed = np.unique(np.concatenate([*self._changed, np.empty(0, np.int64)]))
        chunks = self.journal.turn(len(given.index), changed, anew=anew)
        self.whole = self.journal.now if anew or self._other_line else self.whole
        put = BlockWriter(label, blocks, given, self.digests)
        put.keys(0 if anew else self.keys)
        put.journal(self.journal, chunks)
        put.line(0 if self.whole == self.journal.now else self.came)
        header = {
            "digests": put.digests,
            "keys": len(given.index),
            "came": given.rows.came,
            "columns": columns,
            "line": bool(given.line),
            "first": given.first,
            "whole": self.whole,
            "journal": self.journal.to_json(),
        }
        self._stored(header)
        return header

    def leads_to(self, header: Mapping[str, Any]) -> bool:
        """Whether blocks with this header tell all that changed since these were written."""
        unchanged = not (self._anew or self._changed) and self.columns == header.get("columns")
        return "journal" in header and unchanged and self.journal.leads_to(header["journal"])

    def read(
        self, label: str, header: Mapping[str, Any], blocks: Mapping[str, bytes], before: Contents
    ) -> Contents:
        """What was put. `before` is what was written here last, which leads to that, or nothing."""
        given, entries = read_contents(label, header, blocks, before, self.journal.now)
        known = self.journal.entries | entries
        told = header["journal"]
        self.journal = Journal.of(told, {at: known[at] for at in told["entries"]})
        self._stored(header)
        return given

    def _stored(self, header: Mapping[str, Any]) -> None:
        """The blocks hold what this header says."""
        self.digests, self.columns = header["digests"], header["columns"]
        self.keys, self.came, self.whole = header["keys"], header["came"], header["whole"]
        self._changed, self._anew, self._other_line = [], False, False
