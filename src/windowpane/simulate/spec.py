"""What a synthetic stream looks like."""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1_000_000
"""Microseconds."""


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """A stream of (ts, key, value) in arrival order; every length of time is in microseconds.

    Attributes:
        rows: how many tuples.
        rate: tuples per second of event time, on average.
        keys: how many keys; key k is the k-th most frequent when `skew` is above 0.
        skew: 0 for uniform keys, else the exponent of their Zipf distribution.
        disorder: the fraction of tuples that arrive late.
        max_delay: a late tuple is late by 1 us up to this.
        distinct: values are integers in [0, distinct).
        gaps_per_minute: silences that separate sessions; the tuples between them move closer together, so
            that `rate` still holds. Traub et al. (2019, section 6.1) use 5.
        gap: the length of a silence, to the last microsecond free of tuples.
        start: the event time at which the stream begins.
        batch_rows: tuples in each batch but the last.
        seed: another seed is another stream with the same properties.
    """

    rows: int = 1_000_000
    rate: int = 2_000
    keys: int = 1
    skew: float = 0.0
    disorder: float = 0.0
    max_delay: int = 2 * SECOND
    distinct: int = 1_000
    gaps_per_minute: int = 0
    gap: int = 3 * SECOND // 2
    start: int = 0
    batch_rows: int = 262_144
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("rate", "keys", "max_delay", "distinct", "gap", "batch_rows"):
            if getattr(self, name) <= 0:
                raise ValueError(f"StreamSpec: {name} is {getattr(self, name)}, but it must be above 0.")
        for name in ("rows", "skew", "gaps_per_minute", "seed"):
            if getattr(self, name) < 0:
                raise ValueError(f"StreamSpec: {name} is {getattr(self, name)}, but it must not be negative.")
        if not 0 <= self.disorder <= 1:
            raise ValueError(f"StreamSpec: disorder is {self.disorder}, but it is a fraction from 0 to 1.")
        if self.gaps_per_minute and self.gap >= self.cycle:
            raise ValueError(
                f"StreamSpec: {self.gaps_per_minute} gaps of {self.gap} us leave no room in a minute. "
                "Choose fewer or shorter gaps."
            )

    @property
    def cycle(self) -> int:
        """The time from one gap to the next, on average; only with gaps."""
        return 60 * SECOND // self.gaps_per_minute
