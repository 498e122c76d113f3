"""What archives are read from: pipes, files that fail, threads that share an iterator."""

from __future__ import annotations

import fcntl
import gc
import gzip
import io
import os
import termios
import threading
import weakref
from array import array

import numpy as np
import pytest

import stoker
from archives import Trickle, close, expected, listed, make, member
from stoker.io import iter_jsonl, iter_lines, iter_tarfile
from support import at_once, ok


def test_pipes(tmp_path):
    archive = make(*[member(f"{i}", os.urandom(3000)) for i in range(200)])
    want = expected(archive)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for target, source in ((lambda: fifo.write_bytes(archive), lambda: fifo), *[pipe(archive) for _ in range(1)]):
        writer = threading.Thread(target=target)
        writer.start()
        src = source()
        assert listed(src) == want
        if hasattr(src, "read"):  # what is behind the archive belongs to whoever opened the file
            assert not src.read().strip(b"\0")
        close(src)
        writer.join()


def test_who_writes_a_pipe_is_not_cut_off(tmp_path):
    archive = make(member("a", b"1")) + bytes(1_000_000)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    written = []
    writer = threading.Thread(target=lambda: written.append(fifo.write_bytes(archive)))
    writer.start()
    assert listed(fifo) == [("a", b"1")]
    writer.join()
    assert written == [len(archive)]


def pipe(data: bytes):
    read, write = os.pipe()

    def send():
        with open(write, "wb") as f:
            f.write(data)

    return send, lambda: open(read, "rb")


def test_threaded_writers_run_while_it_waits():
    """The writer is a thread of this process: it could not write if the lock was held."""
    read, write = os.pipe()
    archive = make(member("a", bytes(200_000)), member("b", b"2"))
    got = []
    with open(read, "rb", buffering=0) as f:
        reader = threading.Thread(target=lambda: got.extend(listed(f)))
        reader.start()
        for start in range(0, len(archive), 10_000):
            os.write(write, archive[start : start + 10_000])
        os.close(write)
        reader.join()
    assert got == expected(archive)


def test_ctrl_c_ends_a_wait(tmp_path):
    code = """
        import os, signal, threading
        from stoker.io import iter_tarfile
        read, write = os.pipe()
        file = open(read, "rb", buffering=0)
        for src in (file, f"/proc/self/fd/{read}"):
            threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
            try:
                next(iter_tarfile(src))
            except KeyboardInterrupt:
                print("interrupted")
        file.close()
    """
    assert ok(code) == "interrupted\n" * 2


def raw(fd):
    return open(fd, "rb", buffering=0, closefd=False)


def buffered(fd):
    return open(fd, "rb", closefd=False)


def by_path(fd):
    return f"/proc/self/fd/{fd}"


@pytest.fixture
def ends():
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


def wait_until_empty(fd):
    """Whoever reads has begun."""
    size = array("i", [1])
    while size[0]:
        fcntl.ioctl(fd, termios.FIONREAD, size)


@pytest.mark.parametrize("opened", [raw, buffered, by_path])
@pytest.mark.parametrize("function", [iter_tarfile, iter_lines, iter_jsonl])
def test_a_wait_is_cancelled(function, opened, ends):
    read, write = ends
    members, failed = function(opened(read)), []

    def wait():
        try:
            next(members)
        except BaseException as error:
            failed.append(error)

    reader = threading.Thread(target=wait)
    reader.start()
    os.write(write, b"x" * 100)
    wait_until_empty(read)
    members.close()
    reader.join()
    (error,) = failed
    assert isinstance(error, stoker.CancelledError) and "closed" in str(error)
    assert list(members) == []
    members.close()


@pytest.mark.parametrize("opened", [raw, buffered, by_path])
@pytest.mark.parametrize("function", [iter_tarfile, iter_lines, iter_jsonl])
def test_a_wait_has_a_limit(function, opened, ends):
    read, write = ends
    os.write(write, b"x" * 100)
    with pytest.raises(stoker.TimeoutError, match="no bytes came for 0.01 s, the timeout"):
        next(function(opened(read), timeout=0.01))
    for wrong, error in ((-1, ValueError), ("1", TypeError)):
        with pytest.raises(error):
            function(opened(read), timeout=wrong)


def test_nobody_writes(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for function in (iter_tarfile, iter_lines, iter_jsonl):
        with pytest.raises(stoker.TimeoutError):
            next(function(fifo, timeout=0.01))


@pytest.mark.parametrize("opened", [raw, buffered, by_path])
def test_what_is_there_comes_at_once(opened, ends):
    read, write = ends
    lines = iter_lines(opened(read), timeout=100)
    for i in range(5):
        os.write(write, b"line %d\npart" % i)
        assert next(lines).endswith(f"line {i}")
    lines.close()


@pytest.mark.parametrize("size", [3, 1 << 20])
def test_what_a_reader_has_read_ahead_comes_at_once(size, ends):
    read, write = ends
    os.write(write, b"head\nb\nc\npart")
    file = open(read, "rb", size, closefd=False)
    assert file.readline() == b"head\n"
    lines = iter_lines(file, timeout=0.01)
    assert [next(lines), next(lines)] == ["b", "c"]
    with pytest.raises(stoker.TimeoutError):
        next(lines)


def test_descriptors_are_given_back(ends):
    before = set(os.listdir("/proc/self/fd"))
    for opened in (raw, buffered, by_path):
        iters = [function(opened(ends[0])) for function in (iter_tarfile, iter_lines, iter_jsonl)]
        iters[0].close()
        del iters
    assert set(os.listdir("/proc/self/fd")) == before


class Failing(io.RawIOBase):
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def readable(self) -> bool:
        return True

    def readinto(self, b) -> int:
        raise self.error


def test_what_files_raise():
    error = OSError(5, "gone")
    with pytest.raises(OSError) as caught:
        listed(Failing(error))
    assert caught.value is error

    class Odd:
        def __init__(self, result) -> None:
            self.read = lambda size: result

    with pytest.raises(TypeError, match="must give bytes, not str"):
        listed(io.StringIO("text"))
    with pytest.raises(ValueError, match="has given 300000 bytes"):
        listed(Odd(bytes(300_000)))

    class OddInto:
        def __init__(self, result) -> None:
            self.readinto = lambda b: result

    for result in (-1, 2**40):
        with pytest.raises(ValueError, match="says that it has read"):
            listed(OddInto(result))
    with pytest.raises(BlockingIOError):
        listed(OddInto(None))
    with pytest.raises(TypeError):
        listed(OddInto("1"))
    kept = []
    with pytest.raises(stoker.CorruptError):
        listed(type("Keeping", (), {"readinto": lambda self, b: kept.append(b) or 0})())
    with pytest.raises(ValueError, match="released"):  # that memory is used for something else
        kept[0][0]


def test_paths_that_are_none(tmp_path):
    with pytest.raises(stoker.NotFoundError, match="nothing.tar"):
        iter_tarfile(tmp_path / "nothing.tar")
    with pytest.raises(OSError, match="directory"):
        listed(tmp_path)
    for bad in (3, None, [b"x"]):
        with pytest.raises(TypeError, match="expected bytes, a path or a file"):
            iter_tarfile(bad)
    with pytest.raises(ValueError, match="one-dimensional, C-contiguous byte buffer"):
        iter_tarfile(np.zeros((2, 512), np.uint8))


def test_files_are_closed(tmp_path):
    path = tmp_path / "a.tar"
    path.write_bytes(make(member("a", b"1"), member("b", b"2")))
    before = set(os.listdir("/proc/self/fd"))
    whole, begun, closed = iter_tarfile(path), iter_tarfile(path), iter_tarfile(path)
    assert len(list(whole)) == 2 and next(begun) == ("a", b"1")
    closed.close()
    del begun
    assert set(os.listdir("/proc/self/fd")) == before
    with open(path, "rb") as f:  # the file of somebody else stays open
        assert len(listed(f)) == 2 and not f.closed


def test_cycles_are_collected():
    class File(io.BytesIO):
        pass

    file = File(make(member("a", b"1")))
    file.iterator = iter_tarfile(file)
    gone = weakref.ref(file)
    del file
    gc.collect()
    assert gone() is None


def test_a_file_that_uses_its_own_iterator():
    class Snake:
        def read(self, size: int) -> bytes:
            next(self.iterator)
            return b""

    snake = Snake()
    snake.iterator = iter_tarfile(snake)
    with pytest.raises(ValueError, match="used by its own file"):
        next(snake.iterator)


@pytest.mark.parametrize("source", [lambda a: a, io.BytesIO, lambda a: Trickle(a, 999), gzip.compress])
def test_threaded_iterators_are_shared(source):
    archive = make(*[member(f"{i}", b"%d" % i * 100) for i in range(500)])
    iterator = iter_tarfile(source(archive))
    got: list[tuple[str, bytes]] = []

    def work():
        for name, data in iterator:
            got.append((name, bytes(data)))

    at_once(*[work] * 4)
    assert sorted(got) == sorted(expected(archive))
