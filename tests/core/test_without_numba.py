"""Where Numba is missing everything still works, slower, with a warning."""

import subprocess
import sys

PROGRAM = """
import sys, warnings
sys.modules["numba"] = None
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    import windowpane as wp
assert any("Numba is not installed" in str(w.message) for w in seen), [str(w.message) for w in seen]
from windowpane.core.jit import HAVE_NUMBA
assert not HAVE_NUMBA
rows = {"ts": [5, 1, 3, 12, 11, 30], "k": ["a", "b", "a", "b", None, "a"], "v": [1, 2, None, 4, 5, 6]}
windows = (wp.sliding(10, 5), wp.session(4), wp.tumbling(10), wp.landmark(10))
stream = wp.stream(rows, time="ts", keys="k", delay=10)
aggregates = (wp.count(), wp.sum("v"), wp.median("v"), wp.first("k"))
table = stream.window(*windows).agg(*aggregates).run().table
stream = wp.stream(rows, time="ts", keys="k", delay=10)
rank = stream.window(wp.rows(2, 1)).agg(wp.collect("v")).run().table
print(sorted(map(repr, table.to_pylist() + rank.to_pylist())))
"""


def test_answers_are_the_same_without_numba():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    compiled = PROGRAM.replace('sys.modules["numba"] = None', "").replace("assert any", "assert not any")
    compiled = compiled.replace("assert not HAVE_NUMBA", "assert HAVE_NUMBA")
    again = subprocess.run([sys.executable, "-c", compiled], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert done.stdout == again.stdout
    assert "count" in done.stdout
