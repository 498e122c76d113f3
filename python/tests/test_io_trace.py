"""Traces, read back field by field."""

from __future__ import annotations

import gc
import os
import struct
import threading
from collections import defaultdict

import pytest

import stoker
from stoker import PipelineBuilder, ops, source
from stoker.io.utils import trace_counter, trace_event, trace_gc, tracing

from av import make, needs_ffmpeg
from support import ok


def _varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def message(data):
    """{field: [values]} of one message of protobuf's."""
    found, at = defaultdict(list), 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            value, at = _varint(data, at)
        else:
            assert tag & 7 in (1, 2)
            size, at = _varint(data, at) if tag & 7 == 2 else (8, at)
            value, at = data[at : at + size], at + size
            assert len(value) == size
        found[tag >> 3].append(value)
    return found


class Trace:
    """What a file holds: tracks by their uuids, slices and values by their tracks."""

    def __init__(self, path):
        self.processes, self.threads, self.counters = {}, {}, {}
        self.slices, self.values = defaultdict(list), defaultdict(list)
        stacks = defaultdict(list)
        packets = [message(p) for p in message(path.read_bytes())[1]]
        assert all(p[10] == [1] for p in packets)  # of one sequence
        assert packets[0][13] == [1]
        for packet in packets:
            for track in packet[60]:
                self._track(message(track))
            for event in packet[11]:
                self._event(packet[8][0], message(event), stacks)
        assert not any(stacks.values())

    def _track(self, track):
        (uuid,) = track[1]
        if track[3]:
            process = message(track[3][0])
            self.processes[uuid] = (process[1][0], process[6][0].decode())
        elif track[4]:
            thread = message(track[4][0])
            assert track[5] == list(self.processes)
            self.threads[uuid] = (thread[1][0], thread[2][0], thread[5][0].decode())
        else:
            assert track[8] == [b""] and track[5] == list(self.processes)
            self.counters[uuid] = track[2][0].decode()

    def _event(self, time, event, stacks):
        (kind,), (uuid,) = event[9], event[11]
        if kind == 1:
            stacks[uuid].append((event[23][0].decode(), time))
        elif kind == 2:
            name, began = stacks[uuid].pop()
            assert time >= began
            self.slices[uuid].append((name, len(stacks[uuid])))
        else:
            assert kind == 4
            self.values[self.counters[uuid]].append(struct.unpack("<d", event[44][0])[0])

    def named(self):
        """{name of a thread: slices of all such}"""
        made = defaultdict(list)
        for uuid, slices in self.slices.items():
            made[self.threads[uuid][2]] += slices
        return made

    def names(self):
        return [name for slices in self.slices.values() for name, _ in slices]


def test_slices_values_and_names(tmp_path):
    path = tmp_path / "trace"

    def work():
        with trace_event("on a thread"):
            pass

    with tracing(str(path), process_name="tests"):
        with trace_event("outer"):
            with trace_event("inner – with an accent: é"):
                trace_counter(3, 7)
                trace_counter(3, -2.5)
            trace_counter(0, 1)
        thread = threading.Thread(target=work, name="a thread of Python's")
        thread.start()
        thread.join()
    trace = Trace(path)
    assert list(trace.processes.values()) == [(os.getpid(), "tests")]
    assert {pid for pid, _, _ in trace.threads.values()} == {os.getpid()}
    assert trace.named()["MainThread"] == [("inner – with an accent: é", 1), ("outer", 0)]
    assert trace.named()["a thread of Python's"] == [("on a thread", 0)]
    assert trace.values == {"Counter 3": [7, -2.5], "Counter 0": [1]}


def test_functions_are_traced(tmp_path):
    @trace_event("function")
    def function(depth):
        return depth and function(depth - 1)

    with tracing(tmp_path / "trace"):
        function(2)
        with pytest.raises(RecursionError):
            with trace_event("that raises"):
                raise RecursionError
    assert Trace(tmp_path / "trace").named()["MainThread"] == [
        ("function", 2),
        ("function", 1),
        ("function", 0),
        ("that raises", 0),
    ]


def test_nothing_happens_without_a_trace(tmp_path):
    with trace_event("x"):
        trace_counter(0, 1)
    with tracing(tmp_path / "not", enable=False):
        with trace_event("x"):
            pass
    assert not (tmp_path / "not").exists()


def test_one_trace_after_the_other(tmp_path):
    for number in range(3):
        with tracing(tmp_path / "trace", buffer_size=64):
            with trace_event(f"{number}"):
                pass
        assert Trace(tmp_path / "trace").names() == [str(number)]


def test_one_trace_at_a_time(tmp_path):
    with tracing(tmp_path / "trace"):
        with trace_event("mine"):
            with pytest.raises(stoker.BusyError, match="already"):
                with tracing(tmp_path / "trace"):
                    raise AssertionError
    assert Trace(tmp_path / "trace").names() == ["mine"]


def test_a_slice_outlives_its_trace(tmp_path):
    event = trace_event("long")
    with tracing(tmp_path / "one"):
        event.__enter__()
    with tracing(tmp_path / "two"):
        event.__exit__()
    assert Trace(tmp_path / "two").names() == []


def test_a_descriptor(tmp_path):
    with (tmp_path / "trace").open("wb") as file:
        with tracing(file.fileno()), trace_event("x"):
            pass
        file.write(b"")  # it is still open
    assert Trace(tmp_path / "trace").names() == ["x"]


def test_arguments(tmp_path):
    with pytest.raises(FileNotFoundError):
        with tracing(tmp_path / "no" / "folder"):
            raise AssertionError
    with pytest.raises(ValueError, match="buffer_size"):
        with tracing(tmp_path / "trace", buffer_size=0):
            raise AssertionError
    for i in (-1, 64):
        with pytest.raises(ValueError, match="^i must be from 0 to 63"):
            trace_counter(i, 1)
    with pytest.raises(TypeError, match="val"):
        trace_counter(0, "much")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name"):
        trace_event(7)  # type: ignore[arg-type]
    with tracing(tmp_path / "trace"):  # nothing is left behind
        pass


def test_a_full_disk_is_an_error():
    with pytest.raises(OSError, match="write the trace: No space left on device") as caught:
        with tracing("/dev/full"):
            with trace_event("x"):
                pass
    assert isinstance(caught.value, stoker.errors.IOError)


def test_what_was_dropped_is_said(caplog):
    read, write = os.pipe()
    drained = threading.Thread(target=lambda: [None for _ in iter(lambda: os.read(read, 1 << 16), b"")])
    with tracing(write, buffer_size=64):
        for _ in range(20000):
            with trace_event("x"):
                pass
        drained.start()
    os.close(write)
    drained.join()
    os.close(read)
    (record,) = caplog.records
    assert "events of the trace were dropped" in record.message


def test_collections(tmp_path):
    before = list(gc.callbacks)
    trace_gc()
    trace_gc()
    assert len(gc.callbacks) == len(before) + 1
    try:
        with tracing(tmp_path / "trace"):
            gc.collect()
            gc.collect(0)
    finally:
        gc.callbacks[:] = before
    names = Trace(tmp_path / "trace").names()
    assert names.count("gc 2") >= 1
    assert "gc 0" in names


def test_stages_of_pipelines(tmp_path, paths):
    def twice(batch):
        with trace_event("inside"):
            return batch

    with tracing(tmp_path / "trace"):
        pipeline = (
            PipelineBuilder()
            .add_source(source.List(paths))
            .pipe(ops.read())
            .pipe(ops.decode_image(16, 16))
            .batch(8)
            .pipe(twice, name="double")
            .add_sink()
            .build(num_threads=2)
        )
        with pipeline.auto_stop():
            assert len(list(pipeline)) == 6
    slices = Trace(tmp_path / "trace").named()
    of_python = [s for name, some in slices.items() if name.startswith("stoker-worker") for s in some]
    assert ("inside", 1) in of_python
    assert ("double", 0) in of_python
    native = {name for thread, some in slices.items() if not thread.startswith("stoker-worker") for name, _ in some}
    assert {"read", "decode_image"} <= native


@needs_ffmpeg
def test_calls_into_ffmpeg(tmp_path):
    path = make(tmp_path / "v.mp4", seconds=0.2)
    with tracing(tmp_path / "trace"):
        stoker.io.load_video(path)
    names = Trace(tmp_path / "trace").names()
    assert names[:4] == ["demuxer_open", "demuxer_read", "decoder_new", "decoder_decode"]
    assert all(name.startswith("frames_") for name in names[4:])


def test_a_child_of_fork_writes_nothing(tmp_path):
    ok(
        """
        import os
        from stoker.io.utils import trace_event, tracing
        with tracing(sys.argv[1]), trace_event("parent"):
            child = os.fork()
            if child == 0:
                with trace_event("child"):
                    pass
                with tracing(sys.argv[2]), trace_event("own"):
                    pass
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        """,
        tmp_path / "one",
        tmp_path / "two",
    )
    assert Trace(tmp_path / "one").names() == ["parent"]
    assert Trace(tmp_path / "two").names() == ["own"]


def test_threads_at_once(tmp_path):
    from support import at_once

    def work():
        for _ in range(500):
            with trace_event("a"), trace_event("b"):
                trace_counter(1, 2)

    with tracing(tmp_path / "trace"):
        at_once(*[work] * 4)
    trace = Trace(tmp_path / "trace")
    assert trace.names().count("a") == trace.names().count("b") == 2000
    assert len(trace.values["Counter 1"]) == 2000
