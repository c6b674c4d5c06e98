"""The record of a directory of answers: whose they are, and which micro-batches were published.

It is a small file in the directory, replaced in one step after each micro-batch, so that a start can tell
what is gone. The oldest micro-batches may be removed: what is above the oldest one there must be there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

from windowpane.values.errors import BadQuery

FILE = "_windowpane"
_MOST = 1_000

Range = tuple[int, int]
"""The first and the last of numbers without a gap."""


@dataclass(frozen=True)
class Record:
    """The streaming query that owns a directory, and the numbers that it published, in rising ranges."""

    owner: str
    published: tuple[Range, ...] = ()

    def having(self, number: int) -> Record:
        """The record with a number more; of very many gaps the oldest are forgotten."""
        if any(low <= number <= high for low, high in self.published):
            return self
        *before, (low, high) = self.published or ((0, -1),)
        if number == high + 1:
            return replace(self, published=(*before, (low, number)))
        return replace(self, published=tuple(sorted((*self.published, (number, number))))[-_MOST:])

    def lacking(self, number: int) -> Record:
        """The record without a number."""
        cut = [
            part
            for low, high in self.published
            for part in (((low, number - 1), (number + 1, high)) if low <= number <= high else ((low, high),))
        ]
        return replace(self, published=tuple((low, high) for low, high in cut if low <= high))

    def gone(self, there: Collection[int]) -> list[int]:
        """What was published and is not there; of all, the last."""
        if not there:
            return [high for _, high in self.published[-1:]]
        oldest, found = min(there), set(there)
        known = (n for low, high in self.published for n in range(max(low, oldest), high + 1))
        return [number for number in known if number not in found]


def read_record(folder: Path) -> Record | None:
    """The record of a directory; None if it has none."""
    file = folder / FILE
    try:
        found = json.loads(file.read_text("utf-8"))
        ranges = tuple((int(low), int(high)) for low, high in found.get("published", ()))
        return Record(str(found["owner"]), ranges)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadQuery(
            f"{str(file)!r} is damaged, so that nobody knows whose answers these are and whether all are "
            "there. Restore it from a copy, or name another directory."
        ) from error


def write_record(folder: Path, record: Record, aside: Path, *, first: bool = False) -> None:
    """Put the record into the directory in one step, by way of a folder aside; `first`: if none is there."""
    written = aside / FILE
    with written.open("w", encoding="utf-8") as file:
        json.dump({"owner": record.owner, "published": record.published}, file)
        file.flush()
        os.fsync(file.fileno())
    if first:
        _link(written, folder / FILE)
    else:
        written.replace(folder / FILE)


def _link(written: Path, file: Path) -> None:
    """Give the file its name unless another has it: of two that begin at once, one owns the directory."""
    try:
        os.link(written, file)
    except FileExistsError:
        pass
    except OSError:  # a file system without links
        written.replace(file)
        return
    written.unlink()
