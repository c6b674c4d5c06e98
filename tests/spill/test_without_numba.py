"""Without Numba a run within a budget gives the same answers, slower."""

import subprocess
import sys

PROGRAM = """
import sys, warnings
sys.modules["numba"] = None
warnings.simplefilter("ignore")
import windowpane as wp
rows = {"t": [5, 1, 3, 12, 11, 30, 31], "k": ["a", "b", "a", "b", None, "a", "a"],
        "v": [1.5, -2e300, None, 4.25, 5e-320, 6.0, float("nan")], "n": [1, 2, 3, 4, 5, -6, 7]}
named = dict(total=wp.sum("v"), n=wp.sum("n"), most=wp.max("n"), mean=wp.weighted_mean("n", "n"),
             spread=wp.variance("n"), rows=wp.count())
sets = dict(median=wp.median("v"), kinds=wp.distinct("n"), top=wp.top_k("v", 2), names=wp.top_k("k", 1))
by_tuple = wp.per_row(10)
cases = ((wp.sliding(10, 5), "1W"), (wp.sliding(10, 5), "2LA"), (by_tuple, "1W"), (by_tuple.per(), "1W"))
for window, technique in cases:
    budget = wp.Budget(10**6, block_bytes=512, blocks=2, technique=technique)
    both = named | sets if technique == "1W" else named
    table = wp.stream(rows, time="t", keys="k", delay=10).window(window).agg(**both).run(memory=budget).table
    print(sorted(map(repr, table.to_pylist())))
"""


def test_answers_are_the_same_without_numba():
    found = []
    for program in (PROGRAM, PROGRAM.replace('sys.modules["numba"] = None', "")):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found[0] == found[1]
    assert "'rows'" in found[0]
    assert found[0].count("'median'") > 10
