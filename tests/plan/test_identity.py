"""A value is known by the same text in every process, and another value by another."""

import subprocess
import sys
from dataclasses import dataclass
from functools import partial
from textwrap import dedent

import numpy as np
import pytest

from windowpane.plan.identity import identity
from windowpane.values import windows as w

SCRIPT = dedent("""
    import functools
    from dataclasses import dataclass

    import numpy as np

    from windowpane.plan.identity import identity

    class Plain:
        def __init__(self, function):
            self.function, self.many = function, [function]

        def half(self, x):
            return x / 2

    @dataclass(frozen=True)
    class Frozen:
        function: object

    def outer(n):
        def inner(x, y=3):
            return inner(x - n) if x in {"a", "b", "c", n} else sorted([y], key=lambda v: -v)
        return inner

    f = lambda x: x + 1
    for value in (Plain(f), Frozen(f), outer(2), Plain(f).half, functools.partial(f, 1), np.add, len, Plain,
                  {"f": f}, np.arange(500)):
        print(identity(value))
""")


def test_a_value_has_the_same_text_in_every_process():
    """A worker refused the state that another had written: the text held the address of a function."""
    told = [
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    ]
    assert told[0] == told[1]
    assert len(set(told[0].splitlines())) == 10
    assert " at 0x" not in told[0]


def scaled(n):
    return lambda x: x * n


@dataclass(frozen=True)
class Holds:
    function: object


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: x + 1, lambda x: x - 1),
        (lambda x: abs(x) + 1, lambda x: len(x) + 1),
        (scaled(2), scaled(3)),
        (partial(min, 1), partial(min, 2)),
        (lambda x, n=1: x + n, lambda x, n=2: x + n),
        (np.arange(500), np.arange(500)[::-1]),
        ([scaled(1)], [scaled(2)]),
    ],
)
def test_another_function_is_another_value(one, other):
    assert identity(one) != identity(other)
    assert identity(Holds(one)) != identity(Holds(other))
    assert identity(Holds(one)) == identity(Holds(one))


def test_plain_values_are_known_by_their_own_text():
    assert identity((w.Sliding(10, 5), "a", 1.5)) == f"({w.Sliding(10, 5)!r}, 'a', 1.5)"
