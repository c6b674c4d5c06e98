"""Section 6.2 word for word with lists: slow, plain, and independent of the arrays it is compared with."""

from dataclasses import dataclass, field

from windowpane.core.kernels.update_windows import NOT_OPENED


@dataclass
class Key:
    places: list = field(default_factory=list)
    """Every tuple that ever came."""
    bound: int | None = None
    enqueue: list = field(default_factory=list)
    """EAGER: the tuples of the newest window that started."""
    dequeue: list = field(default_factory=list)
    """The tuples of the committed window that were not dequeued."""
    newest: int | None = None
    committed: int | None = None
    phase: str = "done"
    waits_since: int | None = None


class ByMarks:
    """Table 1: an operator that sees tuples, marks and ends, and nothing of how windows are delimited."""

    def __init__(self):
        self.open = {}
        self.given = []

    def read(self, key, row, mark):
        if mark > NOT_OPENED:
            assert key not in self.open
            self.open[key] = (mark, [])
        self.open[key][1].append(row)
        return self.open[key][0]

    def end(self, key):
        """The last row of table 1: t = end[W]."""
        self.given.append((key, *self.open.pop(key)))


class Model:
    """One operator, IN-PLACE."""

    def __init__(self, size, slide, *, eager, timed):
        self.size, self.slide, self.eager, self.timed = size, slide, eager, timed
        self.keys = {}
        self.floor = None
        self.ready = []
        self.order = 0
        self.dequeued, self.done = [], []

    def windows_of(self, place):
        return [
            k
            for k in range(place // self.slide - self.size // self.slide - 1, place // self.slide + 1)
            if k * self.slide <= place < k * self.slide + self.size and (self.timed or k >= 0)
        ]

    def end_of(self, window):
        return window * self.slide + self.size

    def content(self, key, window):
        places = self.keys[key].places
        return [p for p in places if window * self.slide <= p < self.end_of(window)]

    def arrive(self, name, place=None):
        key = self.keys.setdefault(name, Key(bound=self.floor))
        place = place if self.timed else len(key.places)
        if key.bound is not None and place < key.bound:
            return False
        if self.timed:
            self.advance(name, place)
        key.places.append(place)
        windows = self.windows_of(place)
        if self.eager and windows:
            if key.newest is None or max(windows) > key.newest:
                key.newest, key.enqueue = max(windows), []
                self.wait(key)
            key.enqueue.append(place)
            if key.phase != "done" and key.committed in windows:
                key.dequeue.append(place)
                self.promote(name)
        if not self.timed:
            self.advance(name, place + 1)
        return True

    def advance(self, name, bound):
        key = self.keys[name]
        key.bound = bound if key.bound is None else max(bound, key.bound)
        if self.eager:
            if key.phase == "idle" and self.end_of(key.committed) <= key.bound:
                self.promote(name)
            return
        full = [w for p in key.places for w in self.windows_of(p) if self.end_of(w) <= key.bound]
        if full and (key.newest is None or max(full) > key.newest):
            key.newest = max(full)
            self.wait(key)

    def punctuate(self, bound):
        self.floor = bound
        for name in sorted(self.keys):
            self.advance(name, bound)

    def wait(self, key):
        if key.waits_since is None:
            self.order += 1
            key.waits_since = self.order

    def promote(self, name):
        if self.keys[name].phase == "idle":
            self.keys[name].phase = "ready"
            self.ready.append(name)

    def serve(self, budget):
        while budget > 0:
            if not self.ready:
                waiting = [
                    (key.waits_since, name)
                    for name, key in self.keys.items()
                    if key.waits_since is not None and key.phase == "done"
                ]
                if not waiting:
                    return
                name = min(waiting)[1]
                key = self.keys[name]
                key.waits_since, key.committed, key.phase = None, key.newest, "ready"
                key.dequeue = list(key.enqueue) if self.eager else self.content(name, key.committed)
                self.ready.append(name)
            name = self.ready[0]
            key = self.keys[name]
            for _ in range(min(1, len(key.dequeue)) if self.eager else len(key.dequeue)):
                self.dequeued.append((name, key.committed, key.dequeue.pop(0)))
                budget -= 1
            if key.dequeue:
                continue
            self.ready.pop(0)
            if self.end_of(key.committed) <= key.bound:
                key.phase = "done"
                self.done.append((name, key.committed))
            else:
                key.phase = "idle"
