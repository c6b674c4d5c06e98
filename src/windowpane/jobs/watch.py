"""Watch a streaming query: every micro-batch that Spark reports is taken into its progress once."""

from __future__ import annotations

from typing import Any

from windowpane.jobs.show import Progress, progress_of


class Watch:
    """Follows one streaming query; micro-batches may be quicker than looks at them."""

    def __init__(self, query: Any) -> None:
        self.query = query
        self._seen = ""
        self._progress = Progress(query.name)

    def look(self) -> Progress:
        """The progress by now."""
        for report in self._new():
            self._seen = report["timestamp"]
            self._progress = progress_of(self.query.name, report, self._progress)
        return self._progress

    def _new(self) -> list[Any]:
        """Reports of micro-batches since the last look; Spark also reports when nothing came."""
        last = self.query.lastProgress
        if last is None or last["timestamp"] == self._seen:
            return []
        return [
            report
            for report in self.query.recentProgress
            if report["timestamp"] > self._seen and "addBatch" in report["durationMs"]
        ]
