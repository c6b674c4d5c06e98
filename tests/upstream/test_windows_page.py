"""docs/upstream-windows.md is true: its examples run, and its timelines are drawn from a run."""

import doctest
import re
from pathlib import Path

import numpy as np
import pytest

from windowpane.core.upstream.windows import Commit, UpdateWindow
from windowpane.simulate.overload import Arrivals
from windowpane.simulate.overload_windows import simulate_windows

PAGE = (Path(__file__).parents[2] / "docs" / "upstream-windows.md").read_text("utf-8")
SIZE, COST, UNTIL = 3, 2, 15


def test_the_examples_run():
    names, runner = {}, doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for block in re.finditer(r"^```pycon\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL):
        test = doctest.DocTestParser().get_doctest(block[1], names, "upstream-windows.md", None, 0)
        runner.run(test, clear_globs=False)
        names.update(test.globs)
    assert runner.failures == 0
    assert runner.tries > 8


@pytest.mark.paper
@pytest.mark.parametrize("commit", Commit)
def test_the_timeline_of_figure_12_is_that_of_a_run(commit):
    assert timeline(commit) in PAGE, timeline(commit)


def timeline(commit):
    """Windows are named by their first tuple, tuples by when they come."""
    stream = Arrivals(np.arange(1.0, 60), np.zeros(59, np.int64), 1)
    run = simulate_windows(UpdateWindow(SIZE, 1, commit), stream, float(COST), until=float(UNTIL + 10))
    served = dict(zip(run.committed.astype(int).tolist(), (run.windows + 1).tolist(), strict=True))
    done = dict(zip(run.done.astype(int).tolist(), (run.windows + 1).tolist(), strict=True))
    # A window counts for the queue when it starts (EAGER) or ends (LAZY), for the application when it ends.
    update = 0 if commit is Commit.EAGER else SIZE - 1
    names = ("comes", "key", "commits", "works on", "queue", "result", "application", "then")
    lines = {name: [] for name in names}
    waits, working = None, {}
    for start, window in served.items():
        working |= {start + i: window + i // COST for i in range(SIZE * COST)}
    delivered = 0
    for t in range(1, UNTIL + 1):
        updated = t > update
        lines["comes"].append(t)
        lines["key"].append(("U" if waits else "I") if updated else "")
        lines["queue"].append(t - waits if waits else 0)
        waits = waits or (t if updated else None)
        lines["commits"].append(f"w{served[t]}" if t in served else "")
        waits = None if t in served else waits
        lines["works on"].append(working.get(t, ""))
        lines["result"].append(f"w{done[t]}" if t in done else "")
        age = max(0, t - (delivered + SIZE))
        lines["application"].append(age)
        delivered = done.get(t, delivered)
        lines["then"].append(max(0, t - (delivered + SIZE)) if t in done else "")
    return "\n".join(
        (f"{name:<12}" + "".join(f"{cell!s:>4}" for cell in cells)).rstrip() for name, cells in lines.items()
    )
