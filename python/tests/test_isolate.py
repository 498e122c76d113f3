"""isolate=True: decoding in helper processes, whose death costs a sample and nothing else."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import wave
from pathlib import Path

import numpy as np
import pytest

import stoker
from av import make, needs_ffmpeg, tone
from stoker import PipelineBuilder, PipelineFailure, ops, source
from support import WATCHDOG_S, all_ids, build, digest, failing, ids, jpeg, ok, picture, prelude, until


def helpers(of: int | None = None) -> list[int]:
    """The helper processes of a process that live, or that it has not waited for."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdecimal() and (entry / "comm").read_text() == "stoker-decoder\n":
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                found += [int(entry.name)] * (parent == (of or os.getpid()))
    return sorted(found)


def gone(pid: int) -> bool:
    """It has ended, whoever waits for that."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = descriptors()
    yield
    gc.collect()  # what a failure's traceback holds
    assert helpers() == []
    assert descriptors() == before


@pytest.fixture
def misbehave(monkeypatch):
    """Failpoints of helpers that begin from now on."""
    return lambda points: monkeypatch.setenv("STK_FAILPOINTS", points)


# --- results ---


@pytest.mark.parametrize("threads", [1, 3])
def test_the_same_pixels(photos, threads):
    src = source.Directory(photos, shuffle=True, seed=2, epochs=2)
    assert digest(build(src, isolate=True, threads=threads)) == digest(build(src, threads=2))


def test_a_helper_for_each_thread_that_has_work(photos):
    pipeline = build(source.Directory(photos), isolate=True, threads=2)
    assert helpers() == []
    with pipeline.auto_stop():
        next(iter(pipeline))
        assert 1 <= len(helpers()) <= 2
    assert helpers() == []


def test_all_parts_of_a_sample(tmp_path):
    for name in ("image", "mask"):
        for i in range(6):
            (tmp_path / f"{name}{i}.jpg").write_bytes(jpeg(picture(i, 60, 50)))
    paths = {name: [tmp_path / f"{name}{i}.jpg" for i in range(6)] for name in ("image", "mask")}
    src = source.List(**paths, files=["image", "mask"], shuffle=True, seed=4)
    want, got = ([(b.key, bytes(b.image), bytes(b["mask"])) for b in build(src, isolate=i)] for i in (False, True))
    assert got == want


def test_sizes_that_are_not_known_beforehand(tmp_path):
    (tmp_path / "a.jpg").write_bytes(jpeg(picture(1, 67, 45)))
    plain, isolated = (
        list(build(source.Directory(tmp_path), size=None, crop=None, isolate=isolate)) for isolate in (False, True)
    )
    assert isolated[0].image.shape == (1, 45, 67, 3)
    assert bytes(isolated[0].image) == bytes(plain[0].image)


def clips(path, op):
    """The fields of a batch of three."""
    builder = PipelineBuilder().add_source(source.List([path] * 3, seed=1)).pipe(ops.read()).pipe(op)
    (batch,) = builder.batch(3).add_sink(1).build(num_threads=2)
    return {name: np.asarray(batch[name]).tobytes() for name in ("image", "mask") if name in batch}


@needs_ffmpeg
def test_video(tmp_path):
    path = make(tmp_path / "x.mp4", "-c:v", "libx264", "-g", "10")
    options = {"size": 32, "where": "random", "crop": "random_resized", "flip": 0.5}
    want = clips(path, ops.decode_video(4, **options))
    assert want == clips(path, ops.decode_video(4, **options, isolate=True))


@needs_ffmpeg
def test_audio(tmp_path):
    path = tone(tmp_path / "x.flac", "-c:a", "flac", seconds=3)
    for options in ({"seconds": 4}, {"seconds": 1, "where": "random", "sample_rate": 8000, "channels": 1}, {}):
        want = clips(path, ops.decode_audio(**options))
        assert ("mask" in want) == bool(options)
        assert want == clips(path, ops.decode_audio(**options, isolate=True))


def test_wav(tmp_path):
    path = tmp_path / "x.wav"
    with wave.open(str(path), "wb") as f:
        f.setparams((2, 2, 8000, 0, "NONE", ""))
        f.writeframes(np.arange(10000, dtype=np.int16).tobytes())
    for options in ({"seconds": 2, "mask": "mask"}, {"seconds": 0.1, "where": "random"}, {}):
        want = clips(path, ops.decode_wav(**options))
        assert want == clips(path, ops.decode_wav(**options, isolate=True))


@pytest.mark.parametrize("bad", [b"this is no picture", b"", jpeg(picture(0, 64, 64))[:900]])
def test_the_same_errors(tmp_path, bad):
    path = tmp_path / "bad.jpg"
    path.write_bytes(bad)
    errors = []
    for isolate in (False, True):
        with pytest.raises(PipelineFailure) as caught:
            list(build(source.List([path]), isolate=isolate))
        (error,) = caught.value.exceptions
        errors.append((type(error), str(error), error.stage, error.key, error.id))
    assert errors[0] == errors[1] and issubclass(errors[0][0], stoker.DecodeError)


# --- helpers that die ---


@pytest.mark.failpoints
@pytest.mark.parametrize(
    ("how", "words"), [("crash", "the decoder's process died of SIGSEGV"), ("exit", "the decoder's process ended with status 3")]
)
def test_a_crash_fails_its_sample(photos, paths, misbehave, how, words):
    misbehave(f"helper.{how}.5=EIO")
    with pytest.raises(PipelineFailure) as caught:
        list(build(source.List(paths), isolate=True))
    (error,) = caught.value.exceptions
    assert isinstance(error, stoker.DecodeError) and isinstance(error, RuntimeError)
    assert (error.stage, error.id, error.key) == ("decode_image", 5, str(paths[5]))
    assert words in str(error) and "leave it out" in str(error) and paths[5].name in str(error)


@pytest.mark.failpoints
@pytest.mark.parametrize("threads", [1, 3])
def test_a_crash_costs_one_sample(paths, misbehave, threads):
    want = digest(build(source.List([p for i, p in enumerate(paths) if i not in (5, 6)]), crop=None, flip=0, batch=46))
    misbehave("helper.crash.5=EIO;helper.exit.6=EIO")
    pipeline = build(source.List(paths), crop=None, flip=0, batch=48, isolate=True, threads=threads, decode={"on_error": "skip"})
    (got,) = digest(pipeline)
    assert got[2] == [i for i in range(48) if i not in (5, 6)] and got[5] == want[0][5]
    assert [f.id for f in pipeline.failures()] == [5, 6]
    assert pipeline.stats()["stages"][2]["failed"] == 2


@pytest.mark.failpoints
def test_a_crash_is_replaced(paths, misbehave):
    misbehave("helper.crash.5=EIO")
    pipeline = build(source.List(paths), isolate=True, decode={"on_error": "substitute"})
    seen = all_ids(pipeline)
    assert len(seen) == 48 and 5 not in seen


@pytest.mark.failpoints
def test_a_crash_counts_towards_the_limit(paths, misbehave):
    misbehave("helper.crash.1=EIO;helper.crash.2=EIO;helper.crash.3=EIO")
    pipeline = build(source.List(paths), isolate=True, max_failures=2, decode={"on_error": "skip"})
    with pytest.raises(PipelineFailure) as caught:
        list(pipeline)
    (error,) = caught.value.exceptions
    assert isinstance(error, stoker.TooManyFailuresError) and "SIGSEGV" in str(error.__cause__)


@pytest.mark.failpoints
def test_a_decoder_that_hangs(paths, misbehave):
    misbehave("helper.wait.5=hold")
    options = {"isolate": True, "isolate_timeout": 0.2, "threads": 1}
    pipeline = build(source.List(paths[:8]), decode={"on_error": "skip"}, **options)
    assert all_ids(pipeline) == [0, 1, 2, 3, 4, 6, 7]
    (error,) = pipeline.failures()
    assert isinstance(error, stoker.DecodeError) and error.key == str(paths[5])
    assert "took longer than 0.2 s" in str(error) and "isolate_timeout" in str(error)


@pytest.mark.failpoints
def test_killed_while_it_decodes(paths, misbehave):
    misbehave("helper.wait.0=hold")
    pipeline = build(source.List(paths[:4]), isolate=True, threads=1, decode={"on_error": "skip"})
    pipeline.start()
    until(helpers)
    os.kill(helpers()[0], signal.SIGKILL)
    assert 1 <= len(all_ids(pipeline)) <= 4  # 4: it was still on its way to the first
    assert all("SIGKILL" in str(f) for f in pipeline.failures())


def test_killed_while_it_has_nothing_to_do(paths):
    """No sample is lost: there is another helper."""
    go_on = threading.Event()

    def some():
        yield from map(str, paths[:4])
        assert go_on.wait(WATCHDOG_S)
        yield from map(str, paths[4:8])

    builder = PipelineBuilder().add_source(some()).pipe(ops.read()).pipe(ops.decode_image(32, 32, isolate=True))
    pipeline = builder.batch(4).add_sink(1).build(num_threads=1)
    with pipeline.auto_stop():
        iterator = iter(pipeline)
        assert list(next(iterator).key) == [str(path) for path in paths[:4]]
        (old,) = helpers()
        os.kill(old, signal.SIGKILL)
        until(lambda: gone(old))
        go_on.set()
        assert list(next(iterator).key) == [str(path) for path in paths[4:8]]
        assert pipeline.failures() == [] and old not in helpers()


# --- ends ---


@pytest.mark.failpoints
@pytest.mark.parametrize("how", ["stop", "drop", "leave"])
def test_a_stuck_helper_holds_nothing_up(paths, misbehave, how):
    misbehave("helper.wait.2=hold")
    pipeline = build(source.List(paths), isolate=True, batch=2, threads=2)
    with pipeline.auto_stop() if how == "leave" else contextlib.nullcontext():
        iterator = iter(pipeline)
        assert ids(next(iterator)) == [0, 1]
        until(helpers)
    if how == "stop":
        pipeline.stop()
    del iterator, pipeline
    until(lambda: not helpers())


def test_stopped_from_another_thread(photos):
    for n in range(3):
        pipeline = build(source.Directory(photos, epochs=None), isolate=True, batch=4)
        seen = threading.Event()
        stopper = threading.Thread(target=lambda p=pipeline, s=seen: (s.wait(WATCHDOG_S), p.stop()))
        stopper.start()
        with contextlib.suppress(stoker.Error, RuntimeError):
            for i, _ in enumerate(pipeline):
                if i == n:
                    seen.set()
        stopper.join()
        assert helpers() == []


def test_runs_one_after_the_other(photos):
    src = source.Directory(photos)
    before = descriptors()
    for _ in range(5):
        assert len(all_ids(build(src, isolate=True, batch=16))) == 48
        assert descriptors() == before and helpers() == []


BEGIN = """
import os
from stoker import source
from support import build, ids
from test_isolate import helpers
pipeline = build(source.Directory(sys.argv[1], epochs=None), batch=4, isolate=True)
it = iter(pipeline)
first = next(it)
"""


@pytest.mark.parametrize("end", ["", "sys.exit(0)", "os._exit(0)", "del it; pipeline.stop()"])
def test_exit_of_the_interpreter(photos, end):
    pids = ok(BEGIN + "print(*helpers(), flush=True)\n" + end, photos).split()
    assert pids
    until(lambda: all(gone(int(pid)) for pid in pids))


@pytest.mark.parametrize("held", [False, True])
def test_kill_of_the_program(photos, held):
    """Also where a child of it has its descriptors."""
    fork = "\nif os.fork() == 0:\n    import threading; threading.Event().wait(120)\n" if held else "\n"
    code = prelude() + BEGIN + "import warnings; warnings.simplefilter('ignore')" + fork
    code += "print(os.getpid(), *helpers(os.getpid()), flush=True)\nfor batch in it: pass\n"
    line = [sys.executable, "-c", code, str(photos)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, start_new_session=True) as program:
        assert program.stdout
        pids = [int(word) for word in program.stdout.readline().split()]
        assert len(pids) > 1 and pids[0] == program.pid
        program.kill()
        until(lambda: all(gone(pid) for pid in pids[1:]))
        os.killpg(program.pid, signal.SIGKILL) if held else None


@pytest.mark.filterwarnings("ignore")
def test_fork(photos):
    out = ok(
        BEGIN
        + """
import warnings
warnings.simplefilter("ignore")  # of fork with threads
pid = os.fork()
if pid == 0:
    code = 1
    try:
        own = build(source.Directory(sys.argv[1]), batch=4, isolate=True)
        assert sum(len(b) for b in own) == 48 and helpers() == []
        del pipeline, it, own
        code = 0
    finally:
        os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert ids(next(it)) == [4, 5, 6, 7]
pipeline.stop()
print("done", helpers())
""",
        photos,
    )
    assert out == "done []\n"


def test_a_program_that_waits_for_all_its_children(photos):
    """As some do in a handler of SIGCHLD: the helpers' ends are taken from us, and nothing else."""
    out = ok(
        """
        import os, signal
        from stoker import source
        from support import build
        def reap(*_):
            while True:
                try:
                    if os.waitpid(-1, os.WNOHANG)[0] == 0:
                        return
                except ChildProcessError:
                    return
        signal.signal(signal.SIGCHLD, reap)
        print(sum(len(b) for _ in range(3) for b in build(source.Directory(sys.argv[1]), isolate=True)))
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        print(sum(len(b) for _ in range(3) for b in build(source.Directory(sys.argv[1]), isolate=True)))
        """,
        photos,
    )
    assert out == "144\n144\n"


def test_without_standard_files(photos):
    """What opens with the numbers 0 to 2 is not mistaken for them."""
    ok(
        """
        import os
        from stoker import source
        from support import build
        os.close(0), os.close(1)
        pipeline = build(source.Directory(sys.argv[1]), isolate=True, batch=4)
        assert sum(len(b) for b in pipeline) == 48
        os.open("/dev/null", os.O_RDONLY), os.open("/dev/null", os.O_WRONLY)
        """,
        photos,
    )


# --- options ---


def test_options():
    op = ops.decode_image(32, 32, isolate=True, isolate_timeout=5)
    assert repr(op) == "decode_image(width=32, height=32, isolate=True, isolate_timeout=5.0)"
    assert pickle.loads(pickle.dumps(op)) == op != ops.decode_image(32, 32)
    for bad in (0, -1, float("nan"), 1e9):
        with pytest.raises(ValueError, match="isolate_timeout"):
            ops.decode_wav(1, isolate=True, isolate_timeout=bad)
    with pytest.raises(TypeError, match="isolate"):
        ops.decode_wav(1, isolate=1)  # type: ignore[arg-type]


def test_without_the_program(monkeypatch, tmp_path):
    monkeypatch.setenv("STOKER_DECODER", str(tmp_path / "none"))
    ops.decode_image(32, 32)
    with pytest.raises(stoker.UnsupportedError, match="STOKER_DECODER: .*none: there is no such program"):
        ops.decode_image(32, 32, isolate=True)


def test_another_program(monkeypatch, paths):
    monkeypatch.setenv("STOKER_DECODER", "/bin/true")
    with failing("/bin/true ended with status 0 before it was ready"):
        list(build(source.List(paths), isolate=True))


def test_by_hand():
    program = Path(stoker.__file__).with_name("stoker-decoder")
    done = subprocess.run([program], capture_output=True, text=True, timeout=WATCHDOG_S, check=False)
    assert done.returncode == 2 and "started by Stoker" in done.stderr
