"""Update windows and their memory work where Numba is missing, with the same outcome."""

import subprocess
import sys

PROGRAM = """
import sys, warnings
sys.modules["numba"] = None
warnings.simplefilter("ignore")
from windowpane.core.upstream.windows import Commit, UpdateWindow
from windowpane.simulate.overload import arrivals, zipf
from windowpane.simulate.overload_windows import simulate_windows
stream = arrivals(zipf(5, 0.5), 400, seed=2)
for commit in Commit:
    for timed in (False, True):
        run = simulate_windows(UpdateWindow(4, 2, commit, timed), stream, 1.0)
        print(run.windows.tolist(), run.done.tolist(), run.staleness.average_application, run.most_held)
"""


def test_the_outcome_is_the_same_without_numba():
    programs = (PROGRAM, PROGRAM.replace('sys.modules["numba"] = None\n', ""))
    runs = [
        subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False)
        for text in programs
    ]
    assert [run.returncode for run in runs] == [0, 0], [run.stderr for run in runs]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout) > 400
