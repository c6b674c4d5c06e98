"""Small boundary cases, hundreds at once: each is a key of one stream, so that a run answers all of them."""

import random
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from math import inf

import pyarrow as pa

import windowpane as wp
from tests.oracle import OracleQuery, answer
from windowpane.values import windows as w

KEYS = 500
SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64(), "i": pa.int64(), "seq": pa.int64()})
WANTED = {"n": ("count",), "total": ("sum", "i"), "earliest": ("first", "i")}


@dataclass(frozen=True)
class Boundaries:
    """Cases that share windows: rows on edges, exactly a gap apart, at one time, or alone in a session."""

    windows: tuple[w.Window, ...]
    rows: list[dict]
    late_by: int

    def query(self):
        """The windows over a stream without a source; no row is late."""
        stream = wp.stream(schema=SCHEMA, time="ts", keys="k", delay=self.late_by, ties="seq")
        named = {"n": wp.count(), "total": wp.sum("i"), "earliest": wp.first("i")}
        return stream.window(*self.windows).agg(**named)

    def batches(self, n=4):
        """The rows in order of arrival, in pushes."""
        table = pa.Table.from_pylist(self.rows, SCHEMA)
        size = -(-len(table) // n)
        return [table.slice(at, size) for at in range(0, len(table), size)]

    def cases(self):
        """The rows of each case."""
        found = {}
        for row in self.rows:
            found.setdefault(row["k"], []).append(row)
        return found

    def expected(self):
        """The oracle's answers, case by case, by definition, key, start and end."""
        return {
            (number, key, start, end): values
            for number, window in enumerate(self.windows)
            for rows in self.cases().values()
            for ((key,), start, end), values in answer(
                OracleQuery(window, WANTED, ("k",), ties="seq"), rows
            ).items()
        }

    def kinds(self):
        """How many cases have a row at the end of a window, rows exactly a gap apart, ties, a lone row."""
        sliding, session, _ = self.windows
        found = Counter()
        for rows in self.cases().values():
            times = sorted(row["ts"] for row in rows)
            steps = [inf, *(b - a for a, b in pairwise(times)), inf]
            found["at an end"] += any((t - sliding.size - sliding.origin) % sliding.slide == 0 for t in times)
            found["exactly a gap"] += session.gap in steps
            found["ties"] += 0 in steps
            found["alone"] += any(min(pair) > session.gap for pair in pairwise(steps))
        return found


def found_in(table):
    """Answers by definition, key, start and end; each came once."""
    found = {
        (row["definition"], row["k"], row["window"]["start"], row["window"]["end"]): {
            name: row[name] for name in WANTED
        }
        for row in table.to_pylist()
    }
    assert len(found) == len(table), "an answer came twice"
    return found


def boundaries(seed):
    """Cases of a seed."""
    rng = random.Random(seed)
    size, slide, late_by = rng.randint(1, 6), rng.randint(1, 8), rng.randint(0, 6)
    windows = (
        w.Sliding(size, slide, rng.randint(-5, 5)),
        w.Session(size),
        w.PerRow(size, rng.randint(1, 3)).per(),
    )
    origin = windows[0].origin
    marks = [origin + k * slide + d for k in range(-4, 5) for d in (0, size, -1)] + [
        k * size for k in range(-4, 5)
    ]
    placed = [(rng.choice(marks), key) for key in range(KEYS) for _ in range(rng.randint(1, 6))]
    # in order but for rows that come late by as much as the delay allows, to the last unit
    placed.sort(key=lambda p: p[0] + rng.choice((0, 0, late_by)))
    rows = [{"ts": t, "k": k, "i": rng.randint(0, 9), "seq": i} for i, (t, k) in enumerate(placed)]
    return Boundaries(windows, rows, late_by)
