"""Shared memory between a worker and its parent."""

from __future__ import annotations

import gc
import os
import threading
import time
from functools import partial

import numpy as np
import pytest

import remote
from stoker.pipeline import SharedMemoryRingBuffer, SharedMemorySegmentPool, iterate_in_subprocess
from support import ok, torch_module, until

METHOD = "forkserver"


def ring(capacity=100, timeout=0.0):
    made = SharedMemoryRingBuffer(capacity, acquire_timeout=timeout)
    return made, made.open_writer(), made.open_reader()


def pool(size=100, count=2, timeout=0.0):
    made = SharedMemorySegmentPool(size, count, acquire_timeout=timeout)
    return made, made.open_writer(), made.open_reader()


# --- the ring ---


def test_ring_publishes_on_commit():
    r, writer, reader = ring()
    assert (r.head, r.tail, r.capacity, reader.zero_copy) == (0, 0, 100, False)
    writer.begin_unit()
    first, second = writer.write_binary(b"abcde"), writer.write_binary(np.arange(3, dtype=np.uint8))
    assert r.head == 0
    span = writer.commit_unit()
    assert (r.head, r.tail) == (8, 0)  # plain bytes
    assert reader.read_binary(*first) == b"abcde" and reader.read_binary(*second) == b"\x00\x01\x02"
    reader.end_unit(span, [])
    assert (r.head, r.tail) == (8, 8)


def test_ring_wraps():
    r, writer, reader = ring(10)
    for i in range(20):
        data = bytes(range(i, i + 7))
        writer.begin_unit()
        place = writer.write_binary(data)
        span = writer.commit_unit()
        assert reader.read_binary(*place) == data and reader.read_mutable(*place) == data
        reader.end_unit(span, [])
    assert r.head == r.tail == 140


def test_ring_abort_and_reset():
    r, writer, _ = ring()
    for leave in (writer.abort_unit, writer.reset):
        writer.begin_unit()
        writer.write_binary(b"x" * 60)
        leave()
        assert r.head == 0
    writer.begin_unit()
    assert writer.write_binary(b"y" * 100) == (0, 100)
    writer.commit_unit()


def test_ring_refuses():
    r, writer, reader = ring(timeout=60)
    writer.begin_unit()
    writer.write_binary(b"x" * 60)
    with pytest.raises(BufferError, match="can never fit"):  # at once
        writer.write_binary(b"x" * 41)
    writer.commit_unit()
    r, writer, reader = ring(timeout=0)
    writer.begin_unit()
    writer.write_binary(b"x" * 60)
    span = writer.commit_unit()
    writer.begin_unit()
    with pytest.raises(BufferError, match="acquire_timeout"):
        writer.write_binary(b"x" * 41)
    reader.end_unit(span, [])
    writer.write_binary(b"x" * 41)


@pytest.mark.parametrize("make", [lambda: SharedMemoryRingBuffer(0), lambda: SharedMemorySegmentPool(10, 0)])
def test_sizes_are_checked(make):
    with pytest.raises(ValueError):
        make()


def blocked(arena, writer, fill, more):
    """A thread that waits for room: (thread, what it came to)."""
    fill()
    result = []

    def wait():
        try:
            result.append(more())
        except BufferError as error:
            result.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    until(lambda: thread_sleeps(thread))
    return thread, result


def thread_sleeps(thread):
    with open(f"/proc/self/task/{thread.native_id}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "S"


def ring_units(writer):
    def put(n):
        writer.begin_unit()
        place = writer.write_binary(b"x" * n)
        writer.commit_unit()
        return place

    return put


@pytest.mark.parametrize("wake", ["tail", "end_unit"])
def test_ring_blocks_in_write_and_wakes(wake):
    r, writer, reader = ring(timeout=60)
    put = ring_units(writer)
    thread, result = blocked(r, writer, lambda: put(80), lambda: put(50))
    if wake == "tail":
        r.tail = 80
    else:
        reader.end_unit(80, [])
    thread.join(60)
    assert result == [(80, 50)]


@pytest.mark.parametrize("wake", ["reclaimed", "end_unit"])
def test_pool_blocks_in_begin_and_wakes(wake):
    p, writer, reader = pool(timeout=60)
    put = ring_units(writer)
    thread, result = blocked(p, writer, lambda: (put(5), put(6)), lambda: put(7))
    if wake == "reclaimed":
        p.reclaimed = 1
    else:
        reader.end_unit(0, [])
    thread.join(60)
    assert result == [(0, 7)]


@pytest.mark.parametrize("make", [ring, pool])
def test_shutdown_wakes_a_blocked_writer(make):
    arena, writer, _ = make(timeout=60)
    put = ring_units(writer)
    fill = (lambda: (put(1), put(1))) if make is pool else (lambda: put(80))
    thread, result = blocked(arena, writer, fill, lambda: put(50))
    arena.shutdown_arena()
    thread.join(60)
    assert isinstance(result[0], BufferError) and "shut down" in str(result[0])
    writer.reset()
    with pytest.raises(BufferError, match="shut down"):
        put(1)


# --- the pool ---


def test_pool_gives_aligned_views():
    p, writer, reader = pool(1000, 3)
    assert (p.segment_size, p.count, p.published, p.reclaimed, reader.zero_copy) == (1000, 3, 0, 0, True)
    writer.begin_unit()
    places = [writer.write_binary(b"a" * 5), writer.write_binary(b"b" * 70), writer.write_binary(b"")]
    assert all(offset % 64 == 0 for offset, _ in places) and p.published == 0
    span = writer.commit_unit()
    assert p.published == 1
    views = [reader.read_binary(*place) for place in places]
    assert [bytes(view) for view in views] == [b"a" * 5, b"b" * 70, b""]
    for view in views[:2]:
        assert np.frombuffer(view, np.uint8).ctypes.data % 64 == 0
    reader.end_unit(span, views)
    assert p.reclaimed == 0
    views[0][0] = 0  # they may be written
    del views, view
    assert p.reclaimed == 1


@pytest.mark.parametrize("derive", ["slice", "array", "slice of an array", "tensor", "read-only"])
def test_what_is_made_of_a_view_keeps_the_segment(derive):
    torch = torch_module() if derive == "tensor" else None
    p, writer, reader = pool(5000)
    writer.begin_unit()
    place = writer.write_binary(bytes(range(100)))
    span = writer.commit_unit()
    view = reader.read_binary(*place)
    reader.end_unit(span, [view])
    kept = {
        "slice": lambda: view[10:20],
        "array": lambda: np.frombuffer(view, np.uint8)[10:20].reshape(2, 5),
        "slice of an array": lambda: np.frombuffer(view, np.uint8)[5:][5:],
        "tensor": lambda: torch.frombuffer(view, dtype=torch.uint8)[10:20],
        "read-only": lambda: view.toreadonly()[10:],
    }[derive]()
    del view
    gc.collect()
    assert p.reclaimed == 0
    assert int(np.asarray(kept).reshape(-1)[0]) == 10
    del kept
    gc.collect()
    assert p.reclaimed == 1


def test_pool_reclaims_in_order():
    p, writer, reader = pool(100, 4)
    views = {}
    for i in range(3):
        writer.begin_unit()
        place = writer.write_binary(bytes([i]) * 10)
        span = writer.commit_unit()
        views[i] = reader.read_binary(*place)
        reader.end_unit(span, [views[i]])
    del views[1]
    assert p.reclaimed == 0
    reader.reset()  # keeps the accounts of what lives
    del views[2]
    assert p.reclaimed == 0
    del views[0]
    assert p.reclaimed == 3


def test_pool_refuses():
    p, writer, reader = pool(100, 2)
    writer.begin_unit()
    with pytest.raises(BufferError, match="can never fit"):
        writer.write_binary(b"x" * 101)
    writer.abort_unit()
    assert p.published == 0
    put = ring_units(writer)
    put(1), put(1)
    with pytest.raises(BufferError, match="acquire_timeout"):
        put(1)
    reader.end_unit(0, [])
    put(1)


def test_views_outlive_the_pool():
    p, writer, reader = pool(5000)
    writer.begin_unit()
    place = writer.write_binary(b"kept" * 10)
    span = writer.commit_unit()
    view = reader.read_binary(*place)
    reader.end_unit(span, [view])
    p.shutdown_arena()
    p.close()
    p.unlink()
    p.close()  # any number of times
    assert p.published == 1
    del p, writer, reader
    gc.collect()
    assert bytes(view) == b"kept" * 10


def test_views_dropped_in_many_threads():
    p, writer, reader = pool(5000, 4, timeout=60)
    put = ring_units(writer)

    def drop(view):
        del view

    for i in range(400):
        offset, n = put(100)
        views = [reader.read_binary(offset, n) for _ in range(3)]
        reader.end_unit(i, views)
        threads = [threading.Thread(target=drop, args=(views.pop(),)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        del threads, thread
    until(lambda: p.reclaimed == 400)


# --- with a worker ---


def arenas():
    return [None, SharedMemoryRingBuffer(1 << 20), SharedMemorySegmentPool(1 << 19, 4)]


def check_arrays(i, item):
    assert item["id"] == i
    for name, want in remote.arrays(i).items():
        if name in ("whole", "part", "view", "small"):
            assert item[name].dtype == want.dtype and (item[name] == want).all()
            assert item[name].flags.writeable
    (array, data), changing = item["nested"]
    assert array.dtype == np.dtype(">u4") and (array == i).all()
    assert bytes(data) == bytes([i]) * 5000 and bytes(changing) == bytes([i]) * 6000
    assert isinstance(item["memory"], memoryview) and bytes(item["memory"]) == bytes([i]) * 7000


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("which", [0, 1, 2])
def test_items_arrive_as_they_were(method, which):
    arena = arenas()[which]
    src = iterate_in_subprocess(remote.Count(6, remote.arrays), mp_context=method, arena=arena)
    for _ in range(2):
        seen = 0
        for i, item in enumerate(src):
            check_arrays(i, item)
            seen += 1
        assert seen == 6
    data, changing = item["nested"][0][1], item["nested"][1]
    if which == 2:
        assert type(data) is memoryview and data.readonly
        assert arena.published == 12 and arena.reclaimed == 11  # `item` is held
        del item, data, changing
        until(lambda: arena.reclaimed == 12)
    elif which == 1:
        assert type(data) is bytes and type(changing) is bytearray and arena.head == arena.tail > 0


@pytest.mark.parametrize("which", [0, 1, 2])
def test_tensors_arrive_as_they_were(which):
    torch = torch_module()
    arena = arenas()[which]
    src = iterate_in_subprocess(remote.Count(3, remote.tensors), mp_context=METHOD, arena=arena)
    for i, item in enumerate(src):
        for got, want in zip(item, remote.tensors(i), strict=True):
            assert got.dtype == want.dtype and got.requires_grad == want.requires_grad
            assert torch.equal(got, want)
    if which:
        assert (arena.head if which == 1 else arena.published) > 0


@pytest.mark.parametrize("which", [1, 2])
def test_one_object_stays_one(which):
    src = iterate_in_subprocess(remote.Count(1, remote.shared_bytes), mp_context=METHOD, arena=arenas()[which])
    ((first, second, third),) = src
    assert first is second and first is not third and bytes(third) == b"x" * 5000


def test_small_items_do_not_take_segments():
    p = SharedMemorySegmentPool(1 << 16, 1, acquire_timeout=0)
    src = iterate_in_subprocess(remote.Count(20, partial(remote.blob, size=4095)), mp_context=METHOD, arena=p)
    assert [len(item) for item in src] == [4095] * 20 and p.published == 0
    src = iterate_in_subprocess(
        remote.Count(1, partial(remote.blob, size=4096)), mp_context=METHOD, arena=(p := SharedMemorySegmentPool(1 << 16, 1))
    )
    assert len(list(src)) == 1 and p.published == 1


@pytest.mark.parametrize("which", [1, 2])
def test_what_was_not_read_is_given_back(which):
    arena = [None, SharedMemoryRingBuffer(25_000), SharedMemorySegmentPool(10_000, 2)][which]
    src = iterate_in_subprocess(remote.Count(10, remote.blob), buffer_size=-1, mp_context=METHOD, arena=arena)
    for _ in range(5):
        for item in src:
            break
        del item  # the worker waits for room, or will; another pass makes it stop
    assert [item[0] for item in src] == list(range(10))


def test_views_stay_valid_over_iterations():
    p = SharedMemorySegmentPool(10_000, 8)  # both passes, beside what is kept
    src = iterate_in_subprocess(remote.Count(3, remote.blob), mp_context=METHOD, arena=p)
    kept = next(iter(src))
    assert [bytes(item[:2]) for item in src] == [bytes([i] * 2) for i in range(3)]
    assert bytes(kept) == remote.blob(0)
    del src
    gc.collect()
    assert bytes(kept) == remote.blob(0)


@pytest.mark.parametrize("which", [1, 2])
def test_an_item_that_never_fits_fails(which):
    arena = [None, SharedMemoryRingBuffer(9_000), SharedMemorySegmentPool(9_000, 2)][which]
    src = iterate_in_subprocess(remote.Count(3, remote.blob), mp_context=METHOD, arena=arena)
    with pytest.raises(RuntimeError, match="Failed to fetch the next item: .*never fit"):
        list(src)


def test_a_reader_that_keeps_everything():
    p = SharedMemorySegmentPool(10_000, 2, acquire_timeout=0.2)
    src = iterate_in_subprocess(remote.Count(5, remote.blob), mp_context=METHOD, arena=p)
    kept = []
    with pytest.raises(RuntimeError, match="no room in the arena within 0.2 seconds"):
        kept.extend(iter_into(src, kept))


def iter_into(src, kept):
    for item in src:
        kept.append(item)
    return []


def memfds(pid="self"):
    found = 0
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found += os.readlink(f"/proc/{pid}/fd/{name}").startswith("/memfd:SharedMemory")
        except OSError:
            pass
    return found


def mappings():
    with open("/proc/self/maps") as file:
        return sum("memfd:SharedMemory" in line for line in file)


@pytest.mark.parametrize("which", [1, 2])
def test_nothing_is_left(which):
    gc.collect()
    before = os.listdir("/dev/shm"), mappings()
    arena = arenas()[which]
    src = iterate_in_subprocess(remote.Count(3, remote.blob), mp_context=METHOD, arena=arena)
    assert mappings() == before[1] + 1
    assert len(list(src)) == 3
    del src, arena
    gc.collect()
    assert (os.listdir("/dev/shm"), mappings(), memfds()) == (*before, 0)


def test_one_arena_serves_one_worker():
    arena = SharedMemoryRingBuffer(1 << 16)
    src = iterate_in_subprocess(remote.Count(1), mp_context="spawn", arena=arena)
    with pytest.raises(ValueError, match="has its worker already"):
        iterate_in_subprocess(remote.Count(1), mp_context="spawn", arena=arena)
    del src


def shmem_kb():
    with open("/proc/meminfo") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Shmem:"))


@pytest.mark.parametrize("side", ["parent", "worker"])
def test_kill_of_either_side_leaves_no_memory(side, tmp_path):
    """The memory has no name, so that nobody has to clean up: it is there while a process uses it."""
    out = ok(
        f"""
        import os, signal, sys
        sys.path.insert(0, {os.path.dirname(__file__)!r})
        import remote
        from functools import partial
        from stoker.pipeline import SharedMemorySegmentPool, iterate_in_subprocess
        names = os.listdir("/dev/shm")
        reading, writing = os.pipe()
        parent = os.fork()
        if parent == 0:
            src = iterate_in_subprocess(
                remote.Count(9, partial(remote.blob, size=30 << 20)), mp_context="forkserver",
                arena=SharedMemorySegmentPool(32 << 20, 3),
            )
            reader = iter(src)
            item = next(reader)
            worker = src._session._worker._process.pid
            os.write(writing, str(worker).encode())
            os.close(writing)
            if {side!r} == "worker":
                os.kill(worker, signal.SIGKILL)
                try:
                    list(reader)
                except RuntimeError as error:
                    assert "SIGKILL" in str(error)
                assert bytes(item[:1]) == b"\\0"
                os._exit(0)
            signal.pause()
        worker = int(os.read(reading, 20))
        fd = os.pidfd_open(worker)
        if {side!r} == "parent":
            os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        import select
        assert select.select([fd], [], [], 60)[0]
        assert os.listdir("/dev/shm") == names
        print("gone")
        """
    )
    assert out == "gone\n"


def test_a_waiting_writer_uses_no_processor():
    r, writer, _ = ring(timeout=0.5)
    ring_units(writer)(80)
    writer.begin_unit()
    before = time.thread_time()
    with pytest.raises(BufferError):
        writer.write_binary(b"x" * 50)
    assert time.thread_time() - before < 0.1
