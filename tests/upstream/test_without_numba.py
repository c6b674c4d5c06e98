"""Update queues serve the same keys without Numba."""

import subprocess
import sys

PROGRAM = """
import sys, warnings
sys.modules["numba"] = None
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import windowpane as wp
    from windowpane.core.jit import HAVE_NUMBA
assert not HAVE_NUMBA
from windowpane.simulate.overload import arrivals, simulate, zipf
updates = arrivals(zipf(12, 0.9), 700, seed=4, pattern="bursts")
for policy in ("append", "shed", "fifo", "in_place", "linecutting", "freshest", "switch"):
    outcome = simulate(policy, updates, 2.5)
    print(policy, outcome.serves.tolist(), outcome.staleness.average_application.hex(), outcome.looked)
queue = wp.UpdateQueue("k", "freshest", clock=iter(range(100)).__next__)
queue.put_batch([{"k": k, "n": n} for n, k in enumerate("abcab")])
queue.close()
print(list(queue))
switch = wp.UpdateQueue("k", "switch", cost=1.0, behind=3.0, clock=iter(range(100)).__next__)
switch.put_batch([{"k": k, "n": n} for n, k in enumerate("abcab")])
print(switch.policy.value, switch.get_batch(9))
"""


def test_the_same_keys_are_served_without_numba():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    compiled = PROGRAM.replace('sys.modules["numba"] = None', "").replace("not HAVE_NUMBA", "HAVE_NUMBA")
    again = subprocess.run([sys.executable, "-c", compiled], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert done.stdout == again.stdout
    assert "freshest [" in done.stdout
