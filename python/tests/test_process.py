"""Fork, signals and the interpreter's end, in processes of their own."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import textwrap

import pytest

from support import WATCHDOG_S, ok, prelude, script

BEGIN = """
from stoker import source
from support import build, ids
pipeline = build(source.Directory(sys.argv[1], epochs=None), batch=4)
"""


def code(text: str) -> str:
    return textwrap.dedent(BEGIN) + textwrap.dedent(text)


@pytest.mark.parametrize("how", ["falls off", "sys.exit(0)", "iterator", "daemon reader", "started only"])
def test_exit_with_a_running_pipeline(photos, how):
    endings = {
        "falls off": "next(iter(pipeline))",
        "sys.exit(0)": "next(iter(pipeline)); sys.exit(0)",
        "iterator": "it = iter(pipeline); kept = [next(it) for _ in range(3)]",
        "daemon reader": """
import threading
seen = threading.Event()
def read():
    for _ in pipeline: seen.set()
threading.Thread(target=read, daemon=True).start()
seen.wait()
""",
        "started only": "pipeline.start()",
    }
    ok(code(endings[how]), photos)


def test_exit_with_an_unread_failure(tmp_path):
    (tmp_path / "x.jpg").write_bytes(b"bad")
    ok(code("pipeline.start(); print('here')"), tmp_path)


def test_exit_after_an_exception(photos):
    done = script(code("next(iter(pipeline)); raise SystemExit(3)"), photos)
    assert (done.returncode, done.stderr) == (3, "")
    done = script(code("next(iter(pipeline)); 1 / 0"), photos)
    assert done.returncode == 1 and done.stderr.rstrip().endswith("ZeroDivisionError: division by zero")


def test_batches_at_exit(photos):
    ok(code("import stoker; stoker.kept = list(zip(pipeline, range(5))); stoker.view = stoker.kept[0][0].image"), photos)


@pytest.mark.filterwarnings("ignore")
def test_fork(photos):
    out = ok(
        code(
            """
            import os, warnings
            warnings.simplefilter("ignore")  # of fork with threads
            unused = build(source.Directory(sys.argv[1]), batch=4)  # built here, run in the child
            it = iter(pipeline)
            first = next(it)
            want = bytes(first.image)
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    for use in (lambda: next(it), pipeline.get_item, pipeline.stop):
                        try:
                            use()
                        except RuntimeError as error:
                            assert "fork" in str(error), error
                        else:
                            raise SystemExit("the child could use it")
                    assert bytes(first.image) == want
                    own = build(source.Directory(sys.argv[1]), batch=4)
                    assert sum(len(b) for b in own) == 48
                    assert sum(len(b) for b in unused) == 48
                    del pipeline, it, own, unused
                    code = 0
                finally:
                    os._exit(code)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
            assert ids(next(it)) == [4, 5, 6, 7]
            pipeline.stop()
            print("done")
            """
        ),
        photos,
    )
    assert out == "done\n"


@pytest.mark.filterwarnings("ignore")
def test_a_forked_child_ends_like_any_process(photos):
    out = ok(
        code(
            """
            import os, warnings
            warnings.simplefilter("ignore")
            it = iter(pipeline)
            next(it)
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                sys.exit(7)  # through the interpreter's own end
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
            assert ids(next(it)) == [4, 5, 6, 7]
            print("parent")
            """
        ),
        photos,
    )
    assert out == "parent\n"


def interrupted(text: str, *args: object) -> subprocess.CompletedProcess[str]:
    """Sends SIGINT once the process has said that it waits."""
    process = subprocess.Popen(
        [sys.executable, "-c", prelude() + code(text), *map(str, args)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=WATCHDOG_S)
    finally:
        process.kill()
        process.wait()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


NEVER = """
# Nothing ever comes: every sample fails and is skipped, in more epochs than anybody waits for.
pipeline = build(source.List([sys.argv[1] + "/no.jpg"], epochs=2**62), read={"on_error": "skip"})
"""


def test_ctrl_c_wakes_a_waiting_reader(photos):
    done = interrupted(
        NEVER
        + """
try:
    print("waiting", flush=True)
    pipeline.get_item()
except KeyboardInterrupt:
    print("interrupted", flush=True)
pipeline.stop()
print("stopped")
""",
        photos,
    )
    assert (done.returncode, done.stdout) == (0, "interrupted\nstopped\n")
    # stop() tells what was lost until then, if anything.
    assert re.fullmatch(r"(\d+ items? failed: \d+:1:read \d+\n)?", done.stderr)


def test_ctrl_c_ends_a_program(photos):
    done = interrupted(NEVER + "\nprint('waiting', flush=True)\nwith pipeline.auto_stop():\n    for batch in pipeline: pass\n", photos)
    assert done.returncode == -signal.SIGINT
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")


def test_signal_handlers_run_while_waiting(photos):
    out = ok(
        code(
            """
            import os, signal, threading
            pipeline = build(source.List([sys.argv[1] + "/no.jpg"], epochs=2**62), read={"on_error": "skip"})
            seen = []
            def handle(*_):
                seen.append(threading.current_thread() is threading.main_thread())
                pipeline._run.cancel()
            signal.signal(signal.SIGALRM, handle)
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            try:
                pipeline.get_item()
            except EOFError:
                print(seen)
            """
        ),
        photos,
    )
    assert out == "[True]\n"


def test_a_waiting_reader_lets_others_run(photos):
    """It holds no interpreter lock, and sleeps."""
    out = ok(
        code(
            """
            import threading, time
            pipeline = build(source.List([sys.argv[1] + "/no.jpg"] * 1), batch=4, read={"on_error": "skip"})
            assert list(pipeline) == []
            pipeline = build(source.Directory(sys.argv[1], epochs=None), batch=4)
            reader = threading.Thread(target=lambda: sum(1 for _, _ in zip(pipeline, range(200))))
            reader.start()
            n = 0
            while reader.is_alive():
                n += 1
            print(n > 100)
            """
        ),
        photos,
    )
    assert out == "True\n"


@pytest.mark.figures
def test_memory_stays_the_same_over_epochs(photos):
    out = ok(
        code(
            """
            import gc
            def pss():
                gc.collect()
                with open("/proc/self/smaps_rollup") as file:
                    return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
            pipeline = build(source.Directory(sys.argv[1]), batch=16, size=224, continuous=True)
            with pipeline.auto_stop():
                for epoch in range(3):
                    for batch in pipeline: pass
                del batch
                before = pss()
                for epoch in range(20):
                    for batch in pipeline: pass
                del batch
                print(pss() - before)
            """
        ),
        photos,
    )
    assert int(out) < 8 * 1024, out  # kB


def test_two_interpreters_share_nothing(photos):
    ok(
        """
        import importlib, stoker._stoker as first
        del sys.modules["stoker._stoker"]
        second = importlib.import_module("stoker._stoker")
        assert first is not second and first.Field is not second.Field
        try:
            second.plan().pipe(first.op_read(), name=None, concurrency=0, order="input", on_error="raise", max_failures=-1, max_failure_rate=0.0)
        except TypeError:
            pass
        else:
            sys.exit("state is shared")
        """
    )
