"""User sessions with late clicks: answers are revised, sessions join, and every row is accounted for."""

import pyarrow as pa

import windowpane as wp
from windowpane.testing import latest

SECOND = 1_000_000
clicks = [  # (seconds, user, page), in order of arrival
    (0, "ann", "home"), (20, "ann", "search"), (25, "bob", "home"),
    (100, "ann", "cart"),  # ann was silent for 80 s: a new session
    (130, "bob", "help"),
    (60, "ann", "search"),  # late by 70 s, within the lateness: it joins ann's two sessions
    (400, "bob", "home"),
    (70, "ann", "lost"),  # late by more than the lateness: in no session
    (None, "bob", "broken"),  # no time at all
]  # fmt: skip
schema = pa.schema({"ts": pa.timestamp("us"), "user": pa.string(), "page": pa.string()})
stream = wp.stream(schema=schema, time="ts", keys="user", delay="5 s", lateness="2 min")
runner = stream.window(wp.session("45 s")).agg(wp.count(), pages=wp.collect("page")).start()

steps = []
for seconds, user, page in clicks:
    time = None if seconds is None else seconds * SECOND
    steps.append(runner.push({"ts": pa.array([time], pa.timestamp("us")), "user": [user], "page": [page]}))
steps.append(runner.close())

everything = pa.concat_tables([runner.answers(step) for step in steps])
print("as it came (a negative revision takes a session back):")
for row in everything.to_pylist():
    print(f"  {row['user']} {row['window']['start']:%M:%S} revision {row['revision']:>2} {row['pages']}")
print("what stands in the end:")
for row in latest(everything).to_pylist():
    print(f"  {row['user']} {row['window']['start']:%M:%S} {row['count']} clicks {row['pages']}")
print("late:   ", [row for step in steps for row in step.late["page"].to_pylist()])
print("rejects:", [tuple(row.values())[1:] for step in steps for row in step.rejects.to_pylist()])
print(runner.counts)
