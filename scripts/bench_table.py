"""Put the figures of a benchmark into README.md.

    windowpane bench operator --json | python scripts/bench_table.py

Only what the benchmark printed is written, with the machine it ran on and the claims that did not hold.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

README = Path(__file__).parents[1] / "README.md"
WHAT = {
    "a": "{n} tumbling windows, in order",
    "b": "{n} tumbling windows and a session window, 20% late",
    "c": "sliding {n} s / 1 s",
    "d": "{n} tumbling windows, 100 keys",
    "e": "median over 20 windows, {n} distinct values",
    "f": "{n} count windows, 20% late",
}


def million(value: float | None) -> str:
    """A rate in million tuples per second, with two or three digits."""
    return "-" if value is None else f"{value / 1e6:.3g}"


def table(document: Mapping[str, Any]) -> str:
    """The rows as a Markdown table: one line for each case, one column for each rate."""
    rows = document["rows"]
    rates = sorted({row["rate"] for row in rows})
    speed = {(row["case"], row["variant"], row["rate"]): row["tuples_per_second"] for row in rows}
    published = {(row["case"], row["variant"]): row["published"] for row in rows}
    lines = [
        "| million tuples/s | published Java | " + " | ".join(f"at {rate:,}/s" for rate in rates) + " |",
        "|---|---:|" + "---:|" * len(rates),
    ]
    for case, variant in sorted(published):
        cells = (million(speed[case, variant, rate]) for rate in rates)
        what = WHAT[case].format(n=f"{variant:,}")
        lines.append(f"| {what} | {million(published[case, variant])} | {' | '.join(cells)} |")
    machine, failed = document["machine"], [c["name"] for c in document["claims"] if not c["holds"]]
    verdict = f"Claims that did not hold: {'; '.join(failed)}." if failed else "Every claim held."
    lines += [
        "",
        (
            f"Ours: one core of {machine['cpu']}, Python {machine['python']}. "
            f"The Java: {document['parameters']['published_on']}, so machines may differ. {verdict}"
        ),
    ]
    return "\n".join(lines)


def fill(page: str, document: Mapping[str, Any]) -> str:
    """The page with everything between the benchmark's markers replaced."""
    name = document["bench"]
    begin, end = f"<!-- bench {name}: begin -->", f"<!-- bench {name}: end -->"
    pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
    if not pattern.search(page):
        raise SystemExit(f"the page has no place for the figures of {name!r}")
    return pattern.sub(lambda _found: f"{begin}\n{table(document)}\n{end}", page)


if __name__ == "__main__":
    README.write_text(fill(README.read_text("utf-8"), json.load(sys.stdin)), "utf-8")
    print(f"wrote {README.name}")
