"""Staleness integrated over time: how long the oldest update that counts has been there, at every moment."""

from __future__ import annotations

from windowpane.core.jit import kernel


@kernel
def area(since: float, counted: float, until: float) -> float:
    """The integral of (t - since) over the times t from `since` (or `counted`, if later) to `until`.

    `counted` is the time up to which staleness is counted already, or from which it is measured; `since` is
    infinite where nothing is stale.
    """
    begin = max(since, counted)
    if not begin < until:
        return 0.0
    return 0.5 * (until - begin) * ((until - since) + (begin - since))
