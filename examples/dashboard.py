"""A dashboard: many windows of several lengths and kinds, from one pass over the stream."""

import windowpane as wp
from windowpane.simulate import StreamSpec, generate

# Ten minutes of requests by 20 services; `value` is the response time in ms.
requests = generate(StreamSpec(rows=120_000, rate=200, keys=20, skew=1.0, disorder=0.1, distinct=500))
stream = wp.stream(requests, time="ts", keys="key", delay="2 s", name="requests")

lengths = [f"{seconds} s" for seconds in (10, 30, 60, 120, 300)]
traffic = stream.window(*(wp.tumbling(length) for length in lengths)).agg(
    wp.count(), mean=wp.mean("value"), name="traffic"
)
overall = stream.window(wp.sliding("1 min", "10 s"), keys=()).agg(
    p99=wp.quantile("value", 0.99), slowest=wp.arg_max("key", by="value"), name="overall"
)
since_start = stream.window(wp.landmark("5 min"), keys=()).agg(
    services=wp.distinct("key"), busiest=wp.top_k("key", 3), name="since_start"
)
bursts = stream.window(wp.session("500 ms")).agg(wp.count(), name="bursts")
print(traffic.explain())

run = wp.run(traffic, overall, since_start, bursts)  # one pass for all of them
for name, table in run.tables.items():
    print(f"{name}: {table.num_rows} rows of {', '.join(table.schema.names)}")

per_length = run.tables["traffic"].group_by("definition").aggregate([("count", "sum"), ("key", "count")])
for row in sorted(per_length.to_pylist(), key=lambda row: row["definition"]):
    print(
        f"  {lengths[row['definition']]:>5}: {row['key_count']:>5} answers over {row['count_sum']} requests"
    )
print(run.tables["since_start"].to_pylist()[-1])
print(run.counts)
