"""Damaged, swapped, stale and foreign blocks: never a wrong answer. Rows 9 to 11 of the fault matrix."""

import os
import random
import shutil

import numpy as np
import pytest

from tests.spill.runs import WINDOW, blocks_of, go_on, pushed, query, rows, running
from windowpane.core.spill.codec import Stamp, block_layout, seal, verify
from windowpane.core.spill.medium import new_buffer
from windowpane.errors import BadState


def test_every_flipped_bit_is_found():
    """A thousand places of a block, one bit each."""
    layout = block_layout({"t": np.int64, "v": np.float64, "k": np.int32}, 4096)
    stamp = Stamp(b"0123456789abcdef", 3, 17, layout.capacity)
    buffer = new_buffer(4096)
    buffer[64:] = np.random.default_rng(1).integers(0, 256, 4096 - 64)
    seal(buffer, layout, stamp)
    verify(buffer, layout, stamp, "here")
    rng = random.Random(5)
    for _ in range(1_000):
        byte, bit = rng.randrange(4096), rng.randrange(8)
        buffer[byte] ^= 1 << bit
        with pytest.raises(BadState):
            verify(buffer, layout, stamp, "here")
        buffer[byte] ^= 1 << bit
    verify(buffer, layout, stamp, "here")


@pytest.mark.parametrize("seed", range(10))
def test_a_flipped_bit_on_disk_ends_the_run_and_names_the_block(tmp_path, seed):
    runner = running(tmp_path)
    path, rng = blocks_of(runner), random.Random(seed)
    in_use = [slot for slot in runner._spill.lanes[0].store.slots.to_array().tolist() if slot >= 0]
    slot = rng.choice(in_use)
    with path.open("r+b") as file:
        at = slot * 1024 + rng.randrange(1024)
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ (1 << rng.randrange(8))]))
    with pytest.raises(BadState, match=rf"block {slot} \(offset {slot * 1024}\) of .*blocks-0 is damaged"):
        go_on(runner)
    with pytest.raises(BadState, match="this run failed"):
        runner.push(rows(10**6))
    runner.discard()


@pytest.mark.parametrize("cut", [0, 1, 512, 1023])
@pytest.mark.parametrize("place", [0, 2, 5])
def test_a_cut_file_is_found(tmp_path, cut, place):
    runner = running(tmp_path)
    in_use = sorted(s for s in runner._spill.lanes[0].store.slots.to_array().tolist() if s >= 0)
    os.truncate(blocks_of(runner), in_use[place] * 1024 + cut)
    with pytest.raises(BadState, match="is damaged: the file ends after"):
        go_on(runner)
    runner.discard()


def test_swapped_blocks_are_found(tmp_path):
    runner = running(tmp_path)
    ring = runner._spill.lanes[0].store.slots
    a, b = [slot for slot in ring.to_array().tolist() if slot >= 0][3:5]
    data = bytearray(blocks_of(runner).read_bytes())
    data[a * 1024 : a * 1024 + 1024], data[b * 1024 : b * 1024 + 1024] = (
        data[b * 1024 : b * 1024 + 1024],
        data[a * 1024 : a * 1024 + 1024],
    )
    blocks_of(runner).write_bytes(data)
    with pytest.raises(BadState, match=r"is damaged: it holds block \d+ of epoch 1"):
        go_on(runner)
    runner.discard()


def test_a_stale_block_is_found(tmp_path):
    """The block that lay in this place before, with a valid checksum."""
    runner = running(tmp_path)
    old = blocks_of(runner).read_bytes()
    go_on(runner, 2)
    ring = runner._spill.lanes[0].store.slots
    now = blocks_of(runner).read_bytes()
    for slot in (s for s in ring.to_array().tolist() if s >= 0):
        was = old[slot * 1024 : slot * 1024 + 1024]
        if was and was != now[slot * 1024 : slot * 1024 + 1024] and was[:4] == b"WPSB":
            with blocks_of(runner).open("r+b") as file:
                file.seek(slot * 1024)
                file.write(was)
            break
    else:
        pytest.fail("no place was used twice")
    with pytest.raises(BadState, match="is damaged: it holds block"):
        pushed(runner, [rows(500 * i) for i in range(10, 20)], [])
    runner.discard()


def test_a_block_of_another_run_is_found(tmp_path):
    runner, other = running(tmp_path / "a"), running(tmp_path / "b")
    shutil.copyfile(blocks_of(other), blocks_of(runner))
    with pytest.raises(BadState, match="is damaged: it is of another store"):
        go_on(runner)
    runner.discard()
    other.discard()


def test_a_damaged_checkpoint_is_refused(tmp_path):
    runner = running(tmp_path)
    runner.checkpoint()
    runner.discard()
    path = tmp_path / "run" / "checkpoint"
    whole = path.read_bytes()
    rng = random.Random(3)
    for _ in range(40):
        at = rng.randrange(len(whole))
        path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << rng.randrange(8))]) + whole[at + 1 :])
        with pytest.raises(BadState):
            query().resume(tmp_path / "run")
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(BadState):
            query().resume(tmp_path / "run")
    path.write_bytes(whole)
    runner = query().resume(tmp_path / "run")
    with pytest.raises(BadState, match="another plan"):
        query(WINDOW + 1).resume(_moved(runner, tmp_path))


def _moved(runner, tmp_path):
    """A copy of a run's directory, as if its process were gone."""
    runner.discard()
    return shutil.copytree(tmp_path / "run", tmp_path / "copy")
