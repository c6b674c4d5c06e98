"""The call-center stream of the SlideM paper (appendix A): steps of calls between agents and customers.

The paper names 20 sites, 12,000 agents and 8 grouping keys; its data is confidential, so the sizes of the
other keys are ours. It says that six attributes are aggregated but lists five; the sixth here is wrapUpTime.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from windowpane.simulate.spec import StreamSpec
from windowpane.simulate.stream import arrivals

GROUPS = {
    "instance": 4,
    "serviceId": 250,
    "agentId": 12_000,
    "mediaId": 6,
    "interactionLegId": 10,
    "agentSite": 20,
    "callSite": 20,
    "direction": 2,
}
"""The grouping keys, and how many values each has."""
ATTRIBUTES = {
    "alertingTime": 12,
    "busyTime": 180,
    "wrapUpTime": 40,
    "waitTime": 55,
    "helpTime": 15,
    "availableTime": 90,
}
"""What is aggregated, and its mean in seconds."""


def calls(spec: StreamSpec) -> Iterator[pa.RecordBatch]:
    """The steps of calls in arrival order; `spec` gives rate, disorder and batches."""
    rng = np.random.default_rng([spec.seed, *b"calls"])
    times, order = arrivals(spec)
    agent = rng.integers(0, GROUPS["agentId"], spec.rows)
    columns = {name: rng.integers(0, size, spec.rows) for name, size in GROUPS.items()}
    columns |= {"agentId": agent, "agentSite": agent % GROUPS["agentSite"]}
    columns |= {name: rng.exponential(mean, spec.rows).astype(np.int64) for name, mean in ATTRIBUTES.items()}
    stamps = pa.array(times).cast(pa.timestamp("us", tz="UTC"))
    arrays = {name: pa.array(values[order].astype(np.int32)) for name, values in columns.items()}
    whole = pa.RecordBatch.from_pydict({"timestamp": stamps, **arrays})
    for at in range(0, spec.rows, spec.batch_rows):
        yield whole.slice(at, spec.batch_rows)
