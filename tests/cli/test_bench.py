"""stoker bench, and plan, which shares its options."""

import json
import os
import pty
import select
import shutil
import signal
import subprocess
import tarfile
import time

import pytest
from conftest import picture


def figures(done, code=0):
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_prints_tables_and_a_verdict(stoker, photos):
    done = stoker("bench", photos, "--size", 32, "--batch", 8)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "", "no progress where stderr is no terminal"
    assert f"{photos}: 20 images in " in done.stdout
    assert ", 2 classes, " in done.stdout
    for word in ("images/s", "CPU ms/image", "first batch ms", "peak memory MiB", "decode_image", "verdict: "):
        assert word in done.stdout
    table = done.stdout.split("\nstage ")[1].split("\n\n")[0].splitlines()[1:]
    rows = {line.split()[0]: line.split() for line in table}
    assert rows["decode_image"][2:4] == ["20", "0"]
    assert rows["batch"][2] == "3"


def test_json(stoker, photos):
    result = figures(stoker("bench", photos, "--size", 32, "--batch", 8, "--epochs", 2, "--threads", 1, "--json"))
    assert result["images"] == 40 and result["batches"] == 6 and result["failed"] == 0
    assert result["classes"] == 2 and result["threads"] == 1
    assert result["images_per_second"] == pytest.approx(40 / result["seconds"], rel=1e-6)
    assert result["cpu_ms_per_image"] == pytest.approx(1e3 * result["cpu_seconds"] / 40, rel=1e-6)
    assert 0 < result["first_batch_ms"] <= 1e3 * result["seconds"]
    assert result["peak_memory_bytes"] > 1 << 20
    assert result["interrupted"] is False and result["error"] is None and result["failures"] == []
    assert [stage["name"] for stage in result["stages"]] == ["source", "read", "decode_image", "batch", "sink"]
    decode = result["stages"][2]
    assert decode["items"] == 40 and decode["bytes"] == 40 * 32 * 32 * 3 and decode["busy_s"] > 0
    assert {"kind", "concurrency", "failed", "substituted", "wait_in_s", "wait_out_s"} <= decode.keys()
    assert result["queues"] and {"name", "capacity", "occupancy"} <= result["queues"][0].keys()
    assert result["verdict"] and "bottleneck" in result


def test_a_flat_folder_has_no_classes(stoker, photos):
    result = figures(stoker("bench", photos / "cat", "--size", 16, "--json"))
    assert result["images"] == 10 and result["classes"] == -1


def test_images_beside_folders_have_no_classes(stoker, photos, tmp_path):
    (tmp_path / "cat").symlink_to(photos / "cat")
    (tmp_path / "list.txt").write_text("no image")
    assert figures(stoker("bench", tmp_path, "--size", 16, "--json"))["classes"] == 1
    picture(20, 20, 1).save(tmp_path / "a.PNG")
    result = figures(stoker("bench", tmp_path, "--size", 16, "--json"))
    assert result["images"] == 11 and result["classes"] == -1


def test_what_is_no_file_fails_in_words(stoker, tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "nowhere.png").symlink_to("/nowhere/at/all")
    (tmp_path / "folder.jpg").mkdir()
    picture(20, 20, 1).save(tmp_path / "good.jpg")
    result = figures(stoker("bench", tmp_path, "--size", 16, "--on-error", "skip", "--json"))
    assert result["images"] == 1
    errors = {os.path.basename(f["key"]): f["error"] for f in result["failures"]}
    assert errors.keys() == {"pipe.jpg", "nowhere.png"}
    assert "not a regular file" in errors["pipe.jpg"] and "No such file" in errors["nowhere.png"]


@pytest.mark.parametrize("ending", ["tar", "zip"])
def test_archives_are_folders_of_images(stoker, photos, tmp_path, ending):
    files = sorted(photos.glob("*/*.jpg"))
    for k in range(2):
        archive = shutil.make_archive(str(tmp_path / f"{k}"), ending, photos, ["cat", "dog"][k])
    done = stoker("bench", tmp_path, "--json", "--size", 16)
    assert done.returncode == 0 and json.loads(done.stdout)["images"] == len(files)
    assert json.loads(stoker("bench", archive, "--json", "--size", 16).stdout)["images"] == 10
    (tmp_path / "x.jpg").write_bytes(files[0].read_bytes())
    assert json.loads(stoker("bench", tmp_path, "--json", "--size", 16).stdout)["images"] == 1


def test_an_archive_that_is_none(stoker, tmp_path):
    (tmp_path / "a.tar").write_text("no archive")
    done = stoker("bench", tmp_path / "a.tar")
    assert done.returncode == 1
    assert "a.tar" in done.stderr


@pytest.mark.parametrize(
    ("name", "method", "text"),
    [
        ("a.tar.gz", "gz", "compressed with gzip"),
        ("A.TGZ", "gz", "compressed with gzip"),
        ("a.tar.xz", "xz", "compressed with xz"),
        ("a.tbz2", "bz2", "compressed with bzip2"),
    ],
)
def test_packed_archives_are_refused_by_name(stoker, photos, tmp_path, name, method, text):
    archive = tmp_path / name
    with tarfile.open(archive, f"w:{method}") as tar:
        tar.add(photos / "cat", "cat")
    for path in (archive, tmp_path):
        done = stoker("bench", path, "--size", 16)
        assert done.returncode == 1 and name in done.stderr and text in done.stderr
        assert "unpack it" in done.stderr and "Not a directory" not in done.stderr


def test_limit_ends_at_a_batch(stoker, photos):
    result = figures(stoker("bench", photos, "--size", 16, "--batch", 4, "--epochs", 50, "--limit", 10, "--json"))
    assert result["images"] == 12


@pytest.mark.parametrize(
    "options",
    [
        ["--crop", "center"], ["--crop=none"], ["--quality", "exact", "--filter", "lanczos"],
        ["--order", "completion"], ["--no-shuffle"], ["--shuffle", "--seed", "7"], ["--reads", "1"],
    ],
)  # fmt: skip
def test_options_are_taken(stoker, photos, options):
    result = figures(stoker("bench", *options, photos, "--size", 16, "--json"))
    assert result["images"] == 20


def test_raise_names_the_file(stoker, broken):
    done = stoker("bench", broken, "--size", 16, "--no-shuffle", "--batch", 4, "--json")
    result = figures(done, code=1)
    assert result["images"] == 8, "batches before the failing image are delivered"
    assert "x1.jpg" in result["error"] and "x1.jpg" in done.stderr
    assert "Traceback" not in done.stderr and done.stderr.startswith("stoker: ")


def test_skip_counts_and_names(stoker, broken):
    result = figures(stoker("bench", broken, "--size", 16, "--on-error", "skip", "--json"))
    assert result["images"] == 8 and result["failed"] == 2
    assert sorted(os.path.basename(f["key"]) for f in result["failures"]) == ["x1.jpg", "x2.jpg"]
    assert all(f["error"] and f["stage"] for f in result["failures"])
    text = stoker("bench", broken, "--size", 16, "--on-error", "skip").stdout
    assert "failed: 2" in text and "x1.jpg" in text and "x2.jpg" in text


def test_what_failed_is_named_once(stoker, broken, tmp_path_factory):
    (broken / "gone.jpg").symlink_to("nowhere")
    text = stoker("bench", broken, "--size", 16, "--on-error", "skip").stdout
    assert text.count("gone.jpg") == 1
    done = stoker("sheet", broken, tmp_path_factory.mktemp("sheet") / "out.png")
    assert done.stderr.count("gone.jpg") == 1


def test_substitute_fills_the_batch(stoker, broken):
    result = figures(stoker("bench", broken, "--size", 16, "--on-error", "substitute", "--json"))
    assert result["images"] == 10 and result["substituted"] == 2


def test_nothing_that_decodes(stoker, tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"no picture")
    done = stoker("bench", tmp_path, "--on-error", "skip")
    assert done.returncode == 1
    assert "no image could be decoded" in done.stderr


def test_an_empty_folder(stoker, tmp_path):
    done = stoker("bench", tmp_path)
    assert done.returncode == 1
    assert str(tmp_path) in done.stderr and done.stdout == ""


@pytest.mark.parametrize("name", ["bench", "plan", "sheet"])
def test_no_such_folder(stoker, tmp_path, name):
    more = [tmp_path / "o.png"] if name == "sheet" else []
    done = stoker(name, tmp_path / "none", *more)
    assert done.returncode == 3
    assert "none" in done.stderr and "No such file" in done.stderr


def test_a_file_is_no_folder(stoker, photos):
    done = stoker("bench", photos / "cat" / "00.jpg")
    assert done.returncode == 3
    assert "Not a directory" in done.stderr


def test_a_name_cannot_steer_the_terminal(stoker, tmp_path):
    bad = os.fsencode(tmp_path) + b"/\x1b[2J\xff.jpg"
    with open(bad, "wb") as file:
        file.write(b"no picture")
    picture(20, 20, 1).save(tmp_path / "good.jpg")
    text = stoker("bench", tmp_path, "--size", 16, "--on-error", "skip", text=False).stdout
    assert b"\x1b" not in text and b"?[2J" in text
    done = stoker("bench", tmp_path, "--size", 16, "--on-error", "skip", "--json")
    [failure] = figures(done)["failures"]
    assert os.fsencode(failure["key"]) == bad


def test_a_full_disk_is_told(stoker, photos):
    with open("/dev/full", "w") as full:
        done = stoker("bench", photos, "--size", 16, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 3
    assert "cannot be written" in done.stderr


def on_terminal(command, *args):
    """Starts it with a terminal as stderr; gives the process and the terminal's other end."""
    here, there = pty.openpty()
    process = subprocess.Popen([command, *map(str, args)], stdout=subprocess.PIPE, stderr=there, text=True)
    os.close(there)
    return process, here


def read_until(fd, word, seconds=60):
    """What comes from the terminal until `word` is in it."""
    text, end = b"", time.monotonic() + seconds
    while word not in text and time.monotonic() < end:
        if select.select([fd], [], [], 1)[0]:
            text += os.read(fd, 4096)
    assert word in text
    return text


def test_progress_and_interrupt(command, photos):
    process, terminal = on_terminal(
        command, "bench", photos, "--size", 32, "--epochs", 1000000, "--json"
    )
    try:
        text = read_until(terminal, b" of 20000000 images")
        assert b"\r" in text and b" a second" in text
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
        os.close(terminal)
    assert process.returncode == 130
    result = json.loads(out)
    assert result["interrupted"] is True and result["images"] > 0 and result["verdict"]


def test_plan_prints_the_stages(stoker, photos):
    done = stoker("plan", photos, "--size", 96, "--batch", 7, "--on-error", "skip")
    assert done.returncode == 0, done.stderr
    for word in (str(photos), "read", "decode_image(96x96", "7", "skip", "reproducible"):
        assert word in done.stdout
    assert "completion order" in stoker("plan", photos, "--order", "completion").stdout
