"""Small streams and windows for the tests of the semantics."""

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from windowpane.values import windows as w
from windowpane.values.semantics import Tuple


@dataclass(frozen=True)
class Shifts(w.ContextFreeWindow):
    """Of every ten units, one window `[0, 4)` and one `[2, 9)`."""

    on: str | None = None
    longest = 7

    def next_edge(self, time):
        return min(
            e for ten in (time // 10, time // 10 + 1) for o in (0, 2, 4, 9) if (e := ten * 10 + o) > time
        )

    def triggers(self, after, upto):
        for ten in range(after // 10 - 1, upto // 10 + 1):
            for start, end in ((0, 4), (2, 9)):
                if after < ten * 10 + end <= upto:
                    yield ten * 10 + start, ten * 10 + end


@dataclass(frozen=True)
class AfterAlarm(w.ContextAwareWindow):
    """For each tuple of a key that is marked `up`, the five units from it on."""

    columns = ("up",)
    horizon = 5

    def windows(self, keys, times, columns):
        alarms = np.flatnonzero(columns["up"].astype(bool))
        return keys[alarms], times[alarms], times[alarms] + 5


small = st.integers(1, 12)
origins = st.integers(-15, 15)
orders = st.sampled_from(["time", "arrival"])
parts = st.sampled_from([(), ("p",)])
divided = st.tuples(st.integers(1, 4), st.integers(1, 5))

FAMILIES = {
    "sliding": st.builds(w.Sliding, small, small, origins),
    "landmark": st.builds(w.Landmark, small, st.none() | origins, origins),
    "cumulative": st.builds(lambda sn, o: w.Cumulative(sn[0], sn[0] * sn[1], o), divided, origins),
    "context_free": st.just(Shifts()),
    "rows": st.builds(w.Rows, small, small, orders, parts),
    "per_row": st.builds(w.PerRow, small, small, orders, parts),
    "last_rows": st.builds(w.LastRows, small, small, origins, parts),
    "session": st.builds(w.Session, small),
    "starts": st.just(w.Delimited(start="up")),
    "ends": st.just(w.Delimited(end="down")),
    "starts_and_ends": st.just(w.Delimited(start="up", end="down")),
    "context_aware": st.just(AfterAlarm()),
}

rows = st.lists(
    st.fixed_dictionaries(
        {
            "ts": st.integers(-20, 40),
            "k": st.sampled_from("ab"),
            "p": st.integers(0, 1),
            "v": st.none() | st.integers(-5, 5),
            "up": st.booleans(),
            "down": st.booleans(),
        }
    ),
    min_size=1,
    max_size=15,
).map(lambda found: [{**row, "tie": i} for i, row in enumerate(found)])


@st.composite
def streams(draw):
    """Tuples of a few times, with ties."""
    return tuple(
        Tuple(
            time=row["ts"],
            arrival=i,
            tie=draw(st.integers(0, 1)),
            partition=row["p"],
            key=row["k"],
            marks={"up": row["up"], "down": row["down"]},
            row=i,
        )
        for i, row in enumerate(draw(rows))
    )


def at(*times):
    """Tuples at these times, in this order of arrival."""
    return [Tuple(time, i, row=i) for i, time in enumerate(times)]


def times_of(tuples):
    """The times of an extent."""
    return [t.time for t in tuples]
