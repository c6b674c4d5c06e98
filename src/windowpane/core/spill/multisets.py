"""How often each value of each key is in a window: what medians, quantiles and frequent values are read from.

A column's values are runs of (order-preserving code, how often), sorted, one list for each key, as in the
partial `ValueCounts`. Arrivals add to the runs and expirations take from them; nothing is counted anew. A
distinct value of a key takes 16 bytes, and a key 8. Where every tuple has a result, the answers on the way
are not read from the runs but replayed (`core/replay.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windowpane.core.arrays import Bools, Ints, Ragged, Values
from windowpane.core.kernels.replay import line_up
from windowpane.core.kernels.rolling import Small
from windowpane.core.kernels.value_counts import drop_zeros, merge_runs
from windowpane.core.partials.runs import fold_runs, gather
from windowpane.core.replay import Replay
from windowpane.values.errors import BadState

Coded = tuple[Ints, Bools | None]
"""The codes of a column, and which are of values that are not null (None: all)."""
_PARTS = ("offsets", "values", "weights")


@dataclass(frozen=True)
class Moved:
    """Rows that came or went, in time order: their times, keys and values of every column."""

    time: Ints
    key: Small
    values: tuple[Coded, ...]


@dataclass(frozen=True)
class Read:
    """When answers are read, each at a point and for a key; point p holds the rows in `[low[p], high[p])`."""

    high: Ints
    low: Ints
    point: Ints
    key: Small


class Multisets:
    """The runs of some columns, by key."""

    def __init__(self, columns: int) -> None:
        self.columns = [no_runs()] * columns

    @property
    def size(self) -> int:
        """How many values are held, each once for a key and column."""
        return sum(len(runs.values) for runs in self.columns)

    @property
    def nbytes(self) -> int:
        """Memory held."""
        return sum(int(getattr(runs, part).nbytes) for runs in self.columns for part in _PARTS)

    def slide(self, arrived: Moved, gone: Moved, n_keys: int) -> None:
        """Add the rows that arrived and take out those that are gone; new keys are below `n_keys`."""
        for j, (more, less) in enumerate(zip(arrived.values, gone.values, strict=True)):
            runs = wider(self.columns[j], n_keys)
            self.columns[j] = changed(runs, _present(arrived.key, more), _present(gone.key, less))

    def follow(self, arrived: Moved, gone: Moved, n_keys: int, read: Read) -> tuple[Replay, ...]:
        """As `slide`; what gives the answers on the way, for every column."""
        found = []
        for j, (more, less) in enumerate(zip(arrived.values, gone.values, strict=True)):
            runs = wider(self.columns[j], n_keys)
            key, code = _present(arrived.key, more)
            if len(key):
                fresh = fold_runs(code, key, len(runs))
                # in its place at once, so that no more than two versions are there at a time
                runs = self.columns[j] = _merged(
                    runs, Ragged(fresh.offsets, fresh.values, np.zeros_like(fresh.weights))
                )
            gone_key, gone_code = _present(gone.key, less)
            changes, of, upto, after = line_up(
                runs.offsets, runs.values, runs.weights,
                np.concatenate([key, gone_key]).astype(np.int32), np.concatenate([code, gone_code]), len(key),
                np.searchsorted(_times(arrived.time, more), read.high),
                np.searchsorted(_times(gone.time, less), read.low),
            )  # fmt: skip
            self.columns[j] = _without_zeros(Ragged(runs.offsets, runs.values, after))
            found.append(
                Replay(runs.offsets, runs.values, runs.weights, changes, of, read.key, upto[read.point])
            )
        return tuple(found)

    def of(self, key: Small) -> list[Ragged]:
        """The runs of these keys, one list for each, of every column."""
        low = key.astype(np.int64)
        return [gather(runs, low, low + 1) for runs in self.columns]

    def shrink(self, n_keys: int) -> None:
        """Give back the memory of keys from `n_keys` on, none of which has values."""
        for j, runs in enumerate(self.columns):
            self.columns[j] = Ragged(runs.offsets[: n_keys + 1].copy(), runs.values, runs.weights)

    def arrays(self) -> dict[str, Values]:
        """All runs as flat arrays."""
        return {
            f"runs{j}.{part}": getattr(runs, part) for j, runs in enumerate(self.columns) for part in _PARTS
        }

    def restore(self, arrays: dict[str, Values]) -> None:
        """Go on from what `arrays` gave."""
        for j in range(len(self.columns)):
            offsets, values, weights = (arrays[f"runs{j}.{part}"] for part in _PARTS)
            whole = len(offsets) > 0 and offsets[-1] == len(values) == len(weights)
            if not whole or any(array.dtype != np.int64 for array in (offsets, values, weights)):
                raise BadState(f"the values {j} of a window do not fit together: another query wrote them.")
            self.columns[j] = Ragged(offsets, values, weights)


def no_runs() -> Ragged:
    """No key, no value."""
    none = np.empty(0, np.int64)
    return Ragged(np.zeros(1, np.int64), none, none)


def wider(runs: Ragged, n_keys: int) -> Ragged:
    """The same runs with a list for each of at least so many keys."""
    more = n_keys - len(runs)
    if more <= 0:
        return runs
    return Ragged(np.append(runs.offsets, np.repeat(runs.offsets[-1:], more)), runs.values, runs.weights)


def changed(runs: Ragged, more: tuple[Ints, Ints], less: tuple[Ints, Ints]) -> Ragged:
    """The runs after adding some (key, code) and taking others out, each of which is there by then."""
    delta = None
    if len(more[0]):
        delta = fold_runs(more[1], more[0], len(runs))
    if len(less[0]):
        gone = fold_runs(less[1], less[0], len(runs))
        gone = Ragged(gone.offsets, gone.values, -gone.weights)
        delta = gone if delta is None else _merged(delta, gone)
    return runs if delta is None else _without_zeros(_merged(runs, delta))


def _present(key: Small, coded: Coded) -> tuple[Ints, Ints]:
    codes, valid = coded
    rows = key.astype(np.int64)
    return (rows, codes) if valid is None else (rows[valid], codes[valid])


def _times(time: Ints, coded: Coded) -> Ints:
    valid = coded[1]
    return time if valid is None else time[valid]


def _merged(a: Ragged, b: Ragged) -> Ragged:
    return Ragged(*merge_runs(a.offsets, a.values, a.weights, b.offsets, b.values, b.weights))


def _without_zeros(runs: Ragged) -> Ragged:
    return Ragged(*drop_zeros(runs.offsets, runs.values, runs.weights))
