"""FFmpeg is optional, and nothing about the process changes when it is used."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

import stoker
from stoker.io import utils

from av import make, needs_ffmpeg, reference
from support import ok, script


@needs_ffmpeg
def test_versions_are_those_of_the_command():
    versions = utils.get_ffmpeg_versions()
    assert {"libavutil", "libavcodec", "libavformat", "libavfilter"} <= set(versions)
    assert all(len(version) == 3 and version[0] > 0 for version in versions.values())
    lines = re.findall(r"^(lib\w+) +(\d+)\. *(\d+)\. *(\d+) /", reference("-version").decode(), re.MULTILINE)
    command = {name: tuple(map(int, version)) for name, *version in lines}
    assert versions == {name: command[name] for name in versions}


PRINT_VERSION = """
import stoker, stoker.io.utils
try:
    print(stoker.io.utils.get_ffmpeg_versions()["libavformat"][0])
except stoker.UnsupportedError as error:
    print(error)
"""


@needs_ffmpeg
def test_one_of_several_modules_is_chosen_by_its_number():
    """Of a build with modules for several major versions each can be asked for; otherwise the newest is loaded."""
    folder = Path(stoker._stoker.__file__).parent
    there = sorted(int(path.stem.rpartition("-")[2]) for path in folder.glob("stoker-av-*.so"))
    for major in there:
        assert ok(PRINT_VERSION, STOKER_AV_MODULE=str(major)) == f"{major}\n"
    assert ok(PRINT_VERSION, STOKER_AV_MODULE="") == f"{there[-1]}\n"


def copied(folder, *without):
    """A copy of the package, without such files, and a variable of the environment to import it."""
    made = shutil.copytree(Path(stoker.__file__).parent, folder / "stoker", ignore=shutil.ignore_patterns("__pycache__", *without))
    return made, {"PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


@needs_ffmpeg
def test_a_module_that_does_not_load_leaves_the_one_before(tmp_path):
    package, path = copied(tmp_path)
    (package / "stoker-av-71.so").write_bytes(b"no library")
    assert ok(PRINT_VERSION, **path, STOKER_AV_MODULE="") == ok(PRINT_VERSION, STOKER_AV_MODULE="")


def test_a_version_that_is_not_there_says_what_to_do(tmp_path):
    package, path = copied(tmp_path, "stoker-av-*")
    text = ok(PRINT_VERSION, **path, STOKER_AV_MODULE="58")
    assert text.startswith("STOKER_AV_MODULE: there is no stoker-av-58.so: leave STOKER_AV_MODULE unset")
    assert "build for that version of FFmpeg, too (-Dffmpeg_prefixes=FOLDER)" in text
    (package / "stoker-av-71.so").write_bytes(b"no library")
    text = ok(PRINT_VERSION, **path, STOKER_AV_MODULE="71")
    assert re.match(r"STOKER_AV_MODULE: \S+/stoker-av-71\.so: .*: install the libraries of FFmpeg that it is for, or leave", text)


def test_without_ffmpeg_errors_say_what_to_install(tmp_path):
    """Neither a module beside the package, nor one that was installed for all; then one that does not load."""
    package, path = copied(tmp_path, "stoker-av-*")
    text = ok(PRINT_VERSION, **path, STOKER_AV_MODULE="")
    if text.strip().isdigit():
        return  # one was installed for all
    assert text.startswith("FFmpeg is not available: install its libraries (Debian: apt install libavfilter8 or ffmpeg; ")
    assert text.endswith("libavformat-dev libavfilter-dev before it is built)\n")
    (package / "stoker-av-71.so").write_bytes(b"no library")
    broken = ok(PRINT_VERSION, **path, STOKER_AV_MODULE="")
    assert broken.startswith(f"{text.strip()}; a module did not load: ")
    assert "stoker-av-71.so" in broken
    code = """
        import io, numpy, stoker.io
        file = io.BytesIO()
        numpy.save(file, numpy.arange(3))
        print(stoker.io.load_npy(file.getvalue()).sum())
        for call in (stoker.io.load_video, stoker.io.load_audio, stoker.io.load_image, stoker.io.Demuxer, stoker.io.VideoReader):
            try:
                call(b"data")
            except stoker.UnsupportedError as error:
                print(error)
        """
    assert ok(code, **path, STOKER_AV_MODULE="") == "3\n" + 5 * broken


@needs_ffmpeg
def test_filters():
    names = utils.get_ffmpeg_filters()
    assert {"scale", "aresample", "trim", "atrim"} <= set(names)
    assert len(names) == len(set(names))


def test_nothing_of_gpus_is_built_in():
    assert not (utils.built_with_cuda() or utils.built_with_nvcodec() or utils.built_with_nvjpeg())


def test_a_module_that_is_not_there():
    text = ok(
        """
        import stoker, stoker.io
        try:
            stoker.io.demux_video(b"x")
        except stoker.UnsupportedError as error:
            print(error)
        """,
        STOKER_AV_MODULE="/nonexistent/module.so",
    )
    assert "STOKER_AV_MODULE" in text
    assert "/nonexistent/module.so" in text


def test_a_file_that_is_no_module():
    text = ok(
        """
        import stoker, stoker.io.utils
        try:
            stoker.io.utils.get_ffmpeg_versions()
        except stoker.UnsupportedError as error:
            print(error)
        """,
        STOKER_AV_MODULE="libc.so.6",
    )
    assert "no module of Stoker" in text


def test_import_loads_nothing_of_ffmpeg():
    text = ok(
        """
        import pathlib, stoker.io, stoker.io.utils
        print("libav" in pathlib.Path("/proc/self/maps").read_text())
        """
    )
    assert text == "False\n"


@needs_ffmpeg
def test_nothing_is_printed_and_errors_say_what_was_logged():
    text = ok(
        """
        import stoker, stoker.io, stoker.io.utils as u
        level = u.get_ffmpeg_log_level()
        for data in (b"RIFF\\0\\0\\0\\0AVI ", b"\\0\\0\\0\\x18ftypmp42" + bytes(64), bytes(100)):
            try:
                stoker.io.demux_video(data)
            except stoker.Error as error:
                print(error)
        assert u.get_ffmpeg_log_level() == level == 32
        """
    )
    assert text.count("Failed to open the input") == 3


@needs_ffmpeg
def test_signal_handlers_stay(tmp_path):
    path = make(tmp_path / "v.mp4")
    ok(
        """
        import pathlib, signal, stoker.io
        before = [signal.getsignal(n) for n in signal.valid_signals()]
        caught = [line for line in pathlib.Path("/proc/self/status").read_text().split("\\n") if line.startswith(("SigC", "SigI", "SigB"))]
        stoker.io.load_video(sys.argv[1])
        assert before == [signal.getsignal(n) for n in signal.valid_signals()]
        assert caught == [line for line in pathlib.Path("/proc/self/status").read_text().split("\\n") if line.startswith(("SigC", "SigI", "SigB"))]
        """,
        path,
    )


CALLBACK = """
import ctypes, pathlib, re, stoker, stoker.io, stoker.io.utils
stoker.io.utils.get_ffmpeg_versions()
path = re.search(r"/\\S*libavutil\\S*", pathlib.Path("/proc/self/maps").read_text())[0]
util = ctypes.CDLL(path)
KIND = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
heard = []
mine = KIND(lambda ctx, level, text, args: heard.append(text))
util.av_log_set_callback(mine)
def say(text):
    util.av_log(None, 16, text)
"""


@needs_ffmpeg
def test_the_log_callback_of_others_stays():
    ok(
        CALLBACK
        + """
say(b"before")
try:
    stoker.io.demux_video(b"RIFF\\0\\0\\0\\0AVI LIST")
except stoker.Error:
    pass
say(b"after")
assert heard == [b"before", b"after"], heard
"""
    )


@needs_ffmpeg
def test_set_log_level_prints():
    done = script(
        """
        import stoker, stoker.io, stoker.io.utils as u
        u.set_ffmpeg_log_level(48)
        assert u.get_ffmpeg_log_level() == 48
        try:
            stoker.io.demux_video(b"RIFF\\0\\0\\0\\0AVI LIST")
        except stoker.Error:
            pass
        """
    )
    assert done.returncode == 0
    assert "RIFF" in done.stderr or "avi" in done.stderr.lower() or "Format" in done.stderr


def test_log_level_must_be_a_number():
    with pytest.raises(TypeError):
        utils.set_ffmpeg_log_level("loud")  # type: ignore[arg-type]


def test_errors_are_of_the_tree():
    assert issubclass(stoker.UnsupportedError, RuntimeError)
