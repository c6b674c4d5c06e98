"""Windows and an aggregate of your own: opening hours, the minutes before an alarm, the spread of a price."""
# ruff: noqa: INP001, T201, ANN001, ANN201, D101, D102  (a program that prints)

import numpy as np
import pyarrow as pa

import windowpane as wp
from windowpane.testing import check_algebra
from windowpane.values.user_aggregates import Algebra, UserAggregate

MINUTE, DAY, OPENS, CLOSES = 60_000_000, 86_400_000_000, 32_400_000_000, 61_200_000_000


class Hours(wp.ContextFreeWindow):  # 9:00 to 17:00 of each day: the edges follow from numbers alone
    longest = CLOSES - OPENS

    def next_edge(self, time):
        return min(edge + ((time - edge) // DAY + 1) * DAY for edge in (OPENS, CLOSES))

    def triggers(self, after, upto):
        days = range((after - CLOSES) // DAY + 1, (upto - CLOSES) // DAY + 1)
        return [(day * DAY + OPENS, day * DAY + CLOSES) for day in days]


class BeforeAlarm(wp.ContextAwareWindow):  # five minutes up to each alarm: the edges follow from the tuples
    columns, horizon = ("alarm",), 5 * MINUTE

    def windows(self, keys, times, columns):
        at = np.nonzero(columns["alarm"])[0]
        return keys[at], times[at] + 1 - 5 * MINUTE, times[at] + 1


class Spread(UserAggregate):  # the largest price minus the least; a partial is the pair of both
    columns, algebra, type = ("price",), Algebra("algebraic"), pa.float64()

    def lift(self, price):
        return price, price

    def combine(self, a, b):
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])

    def lower(self, partial):
        return partial[1] - partial[0]

    def identity(self):
        return np.inf, -np.inf


price = 20 + np.random.default_rng(1).normal(0, 0.1, 2 * 24 * 60).cumsum()
check_algebra(Spread(), price)  # an error with a counterexample if combine() breaks a law
time = pa.array(np.arange(len(price)) * MINUTE, pa.timestamp("us"))
stream = wp.stream({"ts": time, "price": price, "alarm": price < 13.2}, time="ts")
for row in stream.window(Hours(), BeforeAlarm()).agg(wp.count(), Spread()).run().table.to_pylist():
    print(row)
