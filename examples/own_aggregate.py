"""An aggregate of your own: the spread of a price, and what happens if its algebra is wrong."""

import numpy as np
import pyarrow as pa

import windowpane as wp


class Spread(wp.UserAggregate):  # the largest price minus the least; a partial is the pair of both
    columns, algebra, type = ("price",), wp.Algebra("algebraic"), pa.float64()

    def lift(self, price):
        return price, price

    def combine(self, a, b):
        return np.minimum(a[0], b[0]), np.maximum(a[1], b[1])

    def lower(self, partial):
        return partial[1] - partial[0]

    def identity(self):
        return np.inf, -np.inf


class Wrong(Spread):  # it forgets what came before
    def combine(self, a, b):
        return a[0], b[1]


price = 20 + np.random.default_rng(1).normal(0, 0.1, 600).cumsum()
wp.check_algebra(Spread(), price)
try:
    wp.check_algebra(Wrong(), price)
except wp.errors.BadAggregate as error:
    print(error)  # with a counterexample
stream = wp.stream({"second": np.arange(600), "price": price}, time="second")
for row in stream.window(wp.sliding(120, 60)).agg(Spread(), wp.count()).run().table.to_pylist():
    print(row)
