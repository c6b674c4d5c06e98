"""How much less staleness could any policy have? What can be computed, and what is known in hindsight.

Our policy serves the key that is most overdue at a price of services, and learns rates and price. The same
rule with the true rates and the best of many prices, found afterwards, shows what better learning could gain.
Where keys are few or alike, the least staleness of any policy can be computed, and shows what is left then.
Updates come at random. In virtual time, as `bench staleness`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from windowpane.bench.report import Claim, Report, Row, Scalar
from windowpane.bench.runner import Progress
from windowpane.bench.staleness_cells import (
    KEYS,
    LOADS,
    MEAN,
    MILD,
    MODERATE,
    NAMES,
    THETAS,
    Cell,
    Pair,
    Scale,
    best_of,
    cells,
    measured,
    streams_of,
)
from windowpane.core.arrays import Floats
from windowpane.simulate.optimum import due, in_slots, optimum
from windowpane.simulate.overload import Arrivals, simulate_due, two_class, zipf
from windowpane.values.freshness import Policy

FEW, SOLVED = 3, 10
"""So many keys can be solved whatever their rates, and so many in two classes."""
PRICES: Floats = 0.025 * np.power(1.35, np.arange(17.0))
"""What a service is to save, in (cost * keys) ** 2."""
LIKELY = slice(4, 10)
"""Those among which the best one is for ten keys in two classes."""
SERVICES = 9
"""Waits of more than so many services count as that where the least staleness is computed."""
LEAST, ROOM = 1.01, 1.002


@dataclass(frozen=True, slots=True)
class Size:
    """How much is done: streams, slots of a service for three keys, loads, which of them for ten keys."""

    scale: Scale
    slots: int
    loads: tuple[float, ...]
    keys: tuple[int, ...]
    solved: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Left:
    """What our policy leaves to gain in a cell.

    `ratio` is its application staleness relative to the best of the paper's policies, `hindsight` that of its
    rule with rates and price known; `room` is that of the rule at the best price over the least of any
    policy, `above` ours over that least.
    """

    cell: Cell
    ratio: float
    hindsight: float | None = None
    room: float | None = None
    above: Pair | None = None


def run(quick: bool, progress: Progress) -> Report:  # noqa: FBT001 - the signature of every benchmark
    """Look for what is left to gain, in the milder cells of the grid and in cells of three keys."""
    size = Size(Scale(60_000, 12), 4, tuple(load for load in LOADS if load <= MODERATE), KEYS, (1.2, 2.0))
    if quick:
        size = Size(Scale(20_000, 2), 3, (2.0,), KEYS[:1], ())
    mild = [cell for cell in cells(size.loads, size.keys) if cell.counts(MILD)]
    todo = [*mild, *few(size.loads)]
    found: list[Left] = []
    for cell in todo:
        progress(len(found), len(todo), f"{cell.name}, {len(cell.shares)} keys, load {cell.load:g}")
        found.append(look(cell, size))
    parameters: dict[str, Scalar] = {
        "updates": size.scale.updates,
        "seeds": size.scale.seeds,
        "prices": len(PRICES),
        "slots": size.slots,
        "clock": "virtual time",
    }
    return Report("staleness-least", parameters, [row(one) for one in found], claims(found), missed(found))


def few(loads: Iterable[float]) -> Iterator[Cell]:
    """Skewed updates of so few keys that the least staleness can be computed in small slots."""
    shapes = {f"two classes, {n} of {FEW} slow": two_class(FEW, n) for n in (1, 2)}
    shapes |= {f"zipf {theta}": zipf(FEW, theta) for theta in THETAS if theta <= MILD}
    return (Cell(name, shares, load) for name, shares in shapes.items() for load in loads)


def look(cell: Cell, size: Size) -> Left:
    """Compare our policy with what is known afterwards and, where that is computed, with the least."""
    by_policy = measured(cell, size.scale)
    ours, best = by_policy[Policy.FRESHEST], best_of(by_policy)
    left = Left(cell, ours[1] / best[1])
    if len(cell.shares) == FEW:
        least = least_of(cell.shares, cell.load, slots=size.slots)
        room = room_of(cell.shares, cell.load, slots=size.slots)
        return replace(left, room=room, above=(ours[0] / least[0], ours[1] / least[1]))
    known = hindsight(cell.shares, cell.load, streams_of(cell, size.scale), size.scale.measured)
    left = replace(left, hindsight=known / best[1])
    if len(cell.shares) == SOLVED and len(np.unique(cell.shares)) == 2 and cell.load in size.solved:
        return replace(left, room=room_of(cell.shares, cell.load, slots=1, prices=PRICES[LIKELY]))
    return left


def hindsight(shares: Floats, load: float, streams: Iterable[Arrivals], measured: float) -> float:
    """The application staleness of the most overdue first, with true rates and the best of all prices."""
    waits = [due(shares, part * (load * len(shares)) ** 2) for part in PRICES]
    found = [
        [simulate_due(stream, load, wait, measured=measured).staleness.average_application for wait in waits]
        for stream in streams
    ]
    return float(np.mean(found, axis=0).min())


def least_of(shares: Floats, load: float, *, slots: int) -> Pair:
    """The least staleness that any policy can have."""
    queue, application = (
        optimum(shares, load, application=kind, slots=slots, services=SERVICES) for kind in (False, True)
    )
    return queue, application


def room_of(shares: Floats, load: float, *, slots: int, prices: Floats = PRICES) -> float:
    """The application staleness of the most overdue first, at its best price, over the least of any policy.

    For a consumer that looks at its queue at the ends of slots only, so many in a service.
    """
    given = prices * (load * len(shares)) ** 2
    least, found = in_slots(shares, load, application=True, slots=slots, services=SERVICES, prices=given)
    return min(found) / least


def row(left: Left) -> Row:
    """The cell, and what was found of it; nothing where it was not looked for."""
    cell: dict[str, Scalar] = {
        "updates": left.cell.name,
        "keys": len(left.cell.shares),
        "load": left.cell.load,
    }
    figures = {
        "ratio": left.ratio,
        "hindsight": left.hindsight,
        "rule_above_least": left.room,
        "above_least": left.above and left.above[1],
    }
    return cell | {name: None if value is None else round(value, 5) for name, value in figures.items()}


def claims(found: list[Left]) -> list[Claim]:
    """Little is left to gain."""
    made = []
    for kind, name in enumerate(NAMES):
        mean = float(np.mean([one.above[kind] for one in found if one.above]))
        what = f"{name} staleness / least of any policy, mean of cells of {FEW} keys"
        made.append(Claim(what, mean, LEAST, at_most=True))
    ratio, known = means(found)
    what = (
        "application staleness / that with true rates and the best price of each cell, means of milder cells"
    )
    made.append(Claim(what, ratio / known, LEAST, at_most=True))
    what = "application staleness of our rule at its best price / least of any policy, worst solved cell"
    return [*made, Claim(what, max(rooms(found)), ROOM, at_most=True)]


def means(found: list[Left]) -> Pair:
    """Of the milder cells: our policy, and its rule with hindsight, relative to the best of the paper's."""
    mild = [(one.ratio, one.hindsight) for one in found if one.hindsight is not None]
    ratio, known = np.mean(mild, axis=0).tolist()
    return ratio, known


def rooms(found: list[Left]) -> list[float]:
    """How far our rule is above the least of any policy, in the cells that are solved."""
    return [one.room for one in found if one.room is not None]


def missed(found: list[Left]) -> list[str]:
    """What to say of a bar for the milder cells that is missed and that no policy seems to reach.

    So it seems if our rule with true rates and the best price of each cell misses it too, by more than any
    policy was found to gain on that rule. That is no proof, as most cells cannot be solved.
    """
    ratio, known = means(found)
    least = known / max(rooms(found))
    if ratio <= MEAN or least <= MEAN:
        return []
    what = f"application staleness / best of the paper's, mean of skewed cells, load up to {MODERATE:g}"
    told = (
        f"{what}, Zipf up to {MILD:g}: {ratio:.4f}, aim {MEAN:g}; with true rates and best prices {known:.4f}"
    )
    return [f"{told}, less what any policy gains on that in a solved cell {least:.4f}"]
