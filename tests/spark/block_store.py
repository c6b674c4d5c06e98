"""Blocks as they lie in the state store: what a queue writes goes there, and other queues read it."""

import json

from windowpane.core import blocks as codec
from windowpane.core.lane_blocks import Blocks
from windowpane.spark.fresh import Fresh


class BlockStore:
    """The blocks and the header of one queue."""

    def __init__(self):
        self.blocks, self.header = {}, None

    def take(self, fresh):
        """Store what the queue writes; those blocks. All that it names is there, and whole."""
        blocks = Blocks()
        header = fresh.store(0, blocks)
        put, gone = blocks.changed({name: codec.digest_of(block) for name, block in self.blocks.items()})
        self.blocks |= put
        for name in gone:
            del self.blocks[name]
        self.header = json.loads(json.dumps(header))
        assert {name: codec.digest_of(block) for name, block in self.blocks.items()} == self.header["digests"]
        return put

    def give(self, fresh):
        """Let a queue go on from what is stored."""
        fresh.restore(0, json.loads(json.dumps(self.header)), dict(self.blocks))
        return fresh

    def reopened(self, fresh):
        """The same queue, written to blocks and read back."""
        self.take(fresh)
        return self.give(Fresh(fresh.spec, fresh.types, ticks=fresh.ticks))


def reopened(fresh):
    """The same queue, all of it written to blocks and read back."""
    fresh.kept.anew()
    return BlockStore().reopened(fresh)
