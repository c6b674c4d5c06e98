"""Random windows, rows, splits and aggregates. Hypothesis draws sizes and a seed; `random` fills the rows."""

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

import windowpane as wp
from tests.oracle.samples import FAMILIES as SMALL
from tests.property.harness import Case, Row, Wanted
from windowpane.values import windows as w
from windowpane.values.aggregates import Algebra
from windowpane.values.user_aggregates import UserAggregate

WORDS = ["", "a", "b", "ab", "é", "zz"]
FLOATS = [0.0, -0.0, 1.0, -1.5, 2.25, 1000.0, 0.1, -7.5]
ODD = [*FLOATS, math.nan, math.inf, -math.inf]
KEYS: dict[str, list[Any]] = {"k": ["a", "b", "", None], "g": [1, 2, None], "p": [0, 1, 2]}


class Squares(UserAggregate):
    """The sum of squares: a user's aggregate that commutes."""

    columns, algebra, type = ("j",), Algebra("distributive"), pa.int64()

    def lift(self, j):
        return (j * j,)

    def combine(self, a, b):
        return (a[0] + b[0],)

    def lower(self, partial):
        return partial[0]

    def identity(self):
        return (0,)

    @property
    def name(self):
        return "squares"

    def named(self, _output):
        return self


class Compose(UserAggregate):
    """Each tuple is the map x -> 3x + j modulo a prime; the result is where all of them, in order, take 1."""

    columns, algebra, type = ("j",), Algebra("algebraic", commutative=False), pa.int64()
    prime = 1_000_003

    def lift(self, j):
        return np.full(len(j), 3), j % self.prime

    def combine(self, a, b):
        return a[0] * b[0] % self.prime, (a[1] * b[0] + b[1]) % self.prime

    def lower(self, partial):
        return (partial[0] + partial[1]) % self.prime

    def identity(self):
        return 1, 0

    @property
    def name(self):
        return "compose"

    def named(self, _output):
        return self


def composed(values):
    """What `Compose` gives for these values in order."""
    x = 1
    for j in values:
        x = (3 * x + j) % Compose.prime
    return x if values else None


def _squares(values):
    return sum(v * v for v in values) if values else None


def _ends(values):
    numbers = [v for v in values if not math.isnan(v)]
    return [min(numbers), max(numbers)] if numbers else None


def _same(function, spec):
    return Wanted(function, spec)


NUMBERS = {
    "count": _same(wp.count(), ("count",)),
    "count_f": _same(wp.count("f"), ("count", "f")),
    "count_s": _same(wp.count("s"), ("count", "s")),
    "sum_i": _same(wp.sum("i"), ("sum", "i")),
    "sum_f": _same(wp.sum("f"), ("sum", "f")),
    "min_i": _same(wp.min("i"), ("min", "i")),
    "min_f": _same(wp.min("f"), ("min", "f")),
    "max_i": _same(wp.max("i"), ("max", "i")),
    "max_f": _same(wp.max("f"), ("max", "f")),
    "mean_i": _same(wp.mean("i"), ("mean", "i")),
    "mean_f": _same(wp.mean("f"), ("mean", "f")),
    "weighted": _same(wp.weighted_mean("i", "j"), ("weighted_mean", "i", "j")),
    "weighted_f": _same(wp.weighted_mean("f", "w"), ("weighted_mean", "f", "w")),
    "geometric_j": _same(wp.geometric_mean("j"), ("geometric_mean", "j")),
    "geometric_w": _same(wp.geometric_mean("w"), ("geometric_mean", "w")),
    "variance_i": _same(wp.variance("i"), ("variance", "i")),
    "variance_f": _same(wp.variance("f", ddof=0), ("variance", "f", 0)),
    "stddev_f": _same(wp.stddev("f"), ("stddev", "f")),
    "stddev_i": _same(wp.stddev("i", ddof=0), ("stddev", "i", 0)),
    "squares": Wanted(Squares(), ("collect", "j"), _squares),
}
PICKED = {
    "min_count_i": _same(wp.min_count("i"), ("min_count", "i")),
    "min_count_f": _same(wp.min_count("f"), ("min_count", "f")),
    "max_count_i": _same(wp.max_count("i"), ("max_count", "i")),
    "max_count_f": _same(wp.max_count("f"), ("max_count", "f")),
    "arg_min_s": _same(wp.arg_min("s", "f"), ("arg_min", "s", "f")),
    "arg_min_i": _same(wp.arg_min("i", "j"), ("arg_min", "i", "j")),
    "arg_max_s": _same(wp.arg_max("s", "i"), ("arg_max", "s", "i")),
    "arg_max_f": _same(wp.arg_max("f", "f"), ("arg_max", "f", "f")),
    "first_s": _same(wp.first("s"), ("first", "s")),
    "first_i": _same(wp.first("i"), ("first", "i")),
    "first_f": _same(wp.first("f"), ("first", "f")),
    "last_s": _same(wp.last("s"), ("last", "s")),
    "last_i": _same(wp.last("i"), ("last", "i")),
    "last_f": _same(wp.last("f"), ("last", "f")),
    "m4_i": _same(wp.m4("i"), ("m4", "i")),
    "m4_f": _same(wp.m4("f"), ("m4", "f")),
}
SETS = {
    "median_i": _same(wp.median("i"), ("median", "i")),
    "median_f": _same(wp.median("f"), ("median", "f")),
    "quantile_i": _same(wp.quantile("i", 0.9), ("quantile", "i", 0.9)),
    "quantiles_f": _same(wp.quantile("f", [0, 0.25, 1]), ("quantile", "f", [0, 0.25, 1])),
    "distinct_i": _same(wp.distinct("i"), ("distinct", "i")),
    "distinct_f": _same(wp.distinct("f"), ("distinct", "f")),
    "distinct_s": _same(wp.distinct("s"), ("distinct", "s")),
    "heavy_i": _same(wp.heavy_hitters("i", 0.3), ("heavy_hitters_counted", "i", 0.3)),
    "heavy_s": _same(wp.heavy_hitters("s", 0.5), ("heavy_hitters_counted", "s", 0.5)),
    "top_f": _same(wp.top_k("f", 2), ("top_k_counted", "f", 2)),
    "top_s": _same(wp.top_k("s", 2), ("top_k_counted", "s", 2)),
    "approx_distinct_s": _same(wp.approx_distinct("s"), ("distinct", "s")),
    "approx_distinct_i": _same(wp.approx_distinct("i"), ("distinct", "i")),
    "approx_ends_f": Wanted(wp.approx_quantile("f", [0, 1]), ("collect", "f"), _ends),
}
ORDERED = {
    "collect_i": _same(wp.collect("i"), ("collect", "i")),
    "collect_f": _same(wp.collect("f"), ("collect", "f")),
    "collect_s": _same(wp.collect("s"), ("collect", "s")),
    "compose": Wanted(Compose(), ("collect", "j"), composed),
}
AGGREGATES = {**NUMBERS, **PICKED, **SETS, **ORDERED}
GROUPS = {"numbers": NUMBERS, "picks": PICKED, "sets": SETS, "ordered": ORDERED}
FEW = {name: AGGREGATES[name] for name in ("count", "sum_i", "max_f", "last_s", "median_i")}
FEW_ORDERED = {**FEW, "collect_i": AGGREGATES["collect_i"], "compose": AGGREGATES["compose"]}

for_each = settings(max_examples=max(15, settings.default.max_examples // 2))
"""For tests that run once for each family of windows: together they try many more than one test would."""

lengths = st.integers(1, 12)
origins = st.integers(-15, 15)
orders = st.sampled_from(["time", "arrival"])
partitions = st.sampled_from([(), ("p",), w.OWN_KEYS, ("k",), ("p", "k"), ("g", "p")])
FAMILIES = {
    **SMALL,
    "tumbling": st.builds(lambda size, o: w.Sliding(size, size, o), lengths, origins),
    "with_gaps": st.builds(lambda size, more, o: w.Sliding(size, size + more, o), lengths, lengths, origins),
    "rows": st.builds(w.Rows, lengths, lengths, orders, partitions),
    "per_row": st.builds(w.PerRow, lengths, st.integers(1, 4), orders, partitions),
    "last_rows": st.builds(w.LastRows, lengths, lengths, origins, partitions),
}
ON_TIME = [name for name in FAMILIES if name != "rows"]


@dataclass(frozen=True)
class Shape:
    """What kind of rows to make."""

    least: int = 1
    most: int = 40
    late: bool = False
    odd: bool = True
    wide: int = 60


def make_rows(seed: int, n: int, delay: int, shape: Shape = Shape()) -> list[Row]:
    """Rows in order of arrival, at most `delay` out of order unless they may be late, with ties and nulls."""
    rng = random.Random(seed)
    low = rng.choice([0, -30, -1000, 10**15])
    span = rng.choice([3, shape.wide // 3, shape.wide])
    floats = ODD if shape.odd and rng.random() < 0.3 else FLOATS
    nulls = rng.choice([0, 0.2, 0.9])
    most_keys = rng.choice([1, 2, 4])
    reach = delay + rng.choice([5, 15, 40]) if shape.late else delay
    times = sorted((low + rng.randrange(span) for _ in range(n)), key=lambda t: t + rng.uniform(0, reach))

    def some(values, share=nulls):
        return None if rng.random() < share else rng.choice(values)

    return [
        {
            "ts": t,
            "k": rng.choice(KEYS["k"][:most_keys]),
            "g": rng.choice(KEYS["g"]),
            "p": rng.choice(KEYS["p"][:most_keys]),
            "i": some([-5, -1, 0, 1, 2, 3, 2**40]),
            "j": some([0, 1, 2, 7]),
            "f": some(floats),
            "w": some([0.5, 1.0, 2.0]),
            "s": some(WORDS),
            "up": rng.random() < 0.3,
            "down": rng.random() < 0.3,
            "seq": seq,
        }
        for t, seq in zip(times, rng.sample(range(n), n), strict=True)
    ]


@st.composite
def inputs(draw, shape: Shape = Shape()) -> dict[str, Any]:
    """Rows, delay and cuts of a case."""
    n = draw(st.integers(shape.least, shape.most))
    delay = draw(st.sampled_from([0, 1, 3] if shape.late else [0, 1, 5, 20]))
    rows = make_rows(draw(st.integers(0, 2**32)), n, delay, shape)
    every = draw(st.sampled_from([0, 1, 3]))
    cuts = range(every, n, every) if every else draw(st.lists(st.integers(0, n), max_size=8))
    return {"rows": rows, "delay": delay, "cuts": cuts}


key_sets = st.sampled_from([(), ("k",), ("g",), ("k", "g"), ("g", "k", "p")])
ties = st.sampled_from(["seq", "seq", None])


@st.composite
def cases(draw, family: str, wanted, shape: Shape = Shape(), **fixed) -> Case:
    """A whole case with one window."""
    found = {**draw(inputs(shape)), **fixed}
    window = draw(FAMILIES[family])
    return Case((window,), wanted, keys=draw(key_sets), ties=draw(ties), **found)
