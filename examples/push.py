"""Push by hand: punctuation that you give, queries that come and go, a snapshot to resume from."""

import pyarrow as pa

import windowpane as wp

schema = pa.schema({"tick": pa.int64(), "sensor": pa.string(), "value": pa.int64()})
stream = wp.stream(schema=schema, time="tick", keys="sensor", punctuation=wp.manual())
totals = stream.window(wp.tumbling(10)).agg(total=wp.sum("value"), name="totals")
peaks = stream.window(wp.sliding(20, 10)).agg(peak=wp.max("value"), name="peaks")


def show(what, step):
    """What a step brought: a table for each query, late rows, rejects, and the counts of the push."""
    print(f"{what}: {step.counts.kept} rows kept, {step.late.num_rows} late")
    for name, table in step.tables.items():
        for row in table.to_pylist():
            print(f"  {name}: {row}")


runner = totals.start()
show("push", runner.push({"tick": [1, 12, 4], "sensor": ["a", "a", "b"], "value": [5, 7, 9]}))
show("punctuate 10", runner.punctuate(10))  # no row below 10 will come: [0, 10) is final
show("a row below it", runner.push({"tick": [9, 13], "sensor": ["a", "b"], "value": [1, 1]}))

runner.add(peaks)  # it answers for rows above the largest tick so far, 13
show("push", runner.push({"tick": [14, 25], "sensor": ["a", "a"], "value": [3, 8]}))

stored = runner.snapshot().to_bytes()  # say, before a restart
print(f"snapshot: {len(stored)} bytes")
runner = wp.resume(stored, totals, peaks)  # the same queries; from here on the same answers
show("punctuate 30", runner.punctuate(30))

runner.remove("totals")
show("push", runner.push({"tick": [31], "sensor": ["b"], "value": [2]}))
show("close", runner.close())
print(runner.counts)
