"""Windows of your own: opening hours, and the minutes before an alarm."""

import numpy as np
import pyarrow as pa

import windowpane as wp

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


price = 20 + np.random.default_rng(1).normal(0, 0.1, 2 * 24 * 60).cumsum()
time = pa.array(np.arange(len(price)) * MINUTE, pa.timestamp("us"))
stream = wp.stream({"ts": time, "price": price, "alarm": price < 13.2}, time="ts")
query = stream.window(Hours(), BeforeAlarm()).agg(wp.count(), low=wp.min("price"), high=wp.max("price"))
for row in query.run().table.to_pylist():
    print(row)
