"""Watch a streaming query: every micro-batch that Spark reports is taken into its progress once."""

from __future__ import annotations

from typing import Any

from windowpane.jobs.show import Progress, progress_of

Told = dict[int, dict[str, Any]]
"""What sinks found out of the answers of micro-batches, by number."""


class Watch:
    """Follows one streaming query; micro-batches may be quicker than looks at them."""

    def __init__(self, query: Any, told: Told | None = None) -> None:
        self.query = query
        self._told: Told = {} if told is None else told
        self._seen = ""
        self._progress = Progress(query.name)

    def look(self) -> Progress:
        """The progress by now."""
        for report in self.reports():
            told = self._told.pop(report["batchId"], None)
            self._progress = progress_of(self.query.name, report, self._progress, told)
        return self._progress

    def reports(self) -> list[Any]:
        """What Spark reported of micro-batches since the last look; it also reports when nothing came."""
        last = self.query.lastProgress
        if last is None or last["timestamp"] == self._seen:
            return []
        recent, seen = self.query.recentProgress, self._seen
        self._seen = max(report["timestamp"] for report in [last, *recent])
        return [r for r in recent if r["timestamp"] > seen and "addBatch" in r["durationMs"]]
