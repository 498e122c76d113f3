"""A whole file of sound, decoded in what becomes its array: the same as frames that are converted."""

from __future__ import annotations

import gc
import logging
import wave

import numpy as np
import pytest

import stoker
from stoker.io import (
    convert_frames,
    decode_packets,
    demux_audio,
    get_audio_filter_desc,
    load_audio,
)

from av import needs_ffmpeg, samples, tone

pytestmark = needs_ffmpeg

FILES = {
    "pcm.wav": ["-c:a", "pcm_s16le"],
    "flac.flac": ["-c:a", "flac"],
    "mp3.mp3": ["-c:a", "libmp3lame"],
    "bare.mp3": ["-c:a", "libmp3lame", "-write_xing", "0", "-id3v2_version", "0"],
    "aac.m4a": ["-c:a", "aac"],
    "aac.aac": ["-c:a", "aac"],
    "mp3.mkv": ["-c:a", "libmp3lame"],
    "vorbis.ogg": ["-c:a", "libvorbis"],
    "opus.webm": ["-c:a", "libopus", "-ar", "48000"],
    "mono.mp3": ["-c:a", "libmp3lame", "-ac", "1"],
    "five.flac": ["-c:a", "flac", "-ac", "6"],
}
FILTERS = {
    "default": get_audio_filter_desc(),
    "none": None,
    "packed": "aformat=sample_fmts=flt",
    "rate": get_audio_filter_desc(sample_rate=16000),
    "higher": get_audio_filter_desc(sample_rate=96000),
    "mono": get_audio_filter_desc(num_channels=1),
    "short": get_audio_filter_desc(num_frames=1000),
    "long": get_audio_filter_desc(num_frames=300_000),
    "slow": "atempo=0.5,aformat=sample_fmts=fltp",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("load_audio")
    for name, options in FILES.items():
        tone(path / name, *options, seconds=3)
    return path


def converted(path, *args, window=None, **options):
    return np.asarray(convert_frames(decode_packets(demux_audio(path, timestamp=window), *args, **options)))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("filters", FILTERS)
def test_it_is_what_frames_make(folder, name, filters):
    found = np.asarray(load_audio(folder / name, filter_desc=FILTERS[filters]))
    np.testing.assert_array_equal(found, converted(folder / name, FILTERS[filters]), strict=True)
    assert found.flags.c_contiguous


@pytest.mark.parametrize("name", FILES)
def test_windows(folder, name):
    if name == "aac.aac":
        return  # its windows are those of a stream without an index
    for window in [(0.5, 1), (0, 0.1), (2.75, 9), (1, 1.0001), (0.3, 1000)]:
        np.testing.assert_array_equal(
            np.asarray(load_audio(folder / name, window)), converted(folder / name, window=window), strict=True
        )


@pytest.mark.parametrize("name", ["mp3.mp3", "aac.m4a", "vorbis.ogg", "flac.flac"])
def test_filters_that_do_nothing_are_left_out(folder, name):
    """What the default makes is the same as with a filter before it that does nothing, and as the command's."""
    found = np.asarray(load_audio(folder / name))
    np.testing.assert_array_equal(found, np.asarray(load_audio(folder / name, filter_desc="anull,aformat=sample_fmts=fltp")))
    np.testing.assert_array_equal(found, samples(folder / name).T)


def test_the_array_is_ones_own(folder):
    first = np.asarray(load_audio(folder / "mp3.mp3"))
    kept = first.copy()
    first += 1
    second = np.asarray(load_audio(folder / "mp3.mp3"))
    gc.collect()
    np.testing.assert_array_equal(second, kept)
    np.testing.assert_array_equal(first, kept + 1)


def test_damaged_packets(folder, tmp_path, caplog):
    path = tmp_path / "damaged.flac"
    data = bytearray((folder / "flac.flac").read_bytes())
    for at in range(len(data) // 2, len(data) // 2 + 3000):
        data[at] ^= 0x55
    path.write_bytes(data)
    with caplog.at_level(logging.WARNING, "stoker.io"):
        expected = converted(path)
        (first,) = [record.getMessage() for record in caplog.records]
        found = np.asarray(load_audio(path))
        assert [record.getMessage() for record in caplog.records] == [first, first]
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(stoker.CorruptError) as one:
        converted(path, strict=True)
    with pytest.raises(stoker.CorruptError) as other:
        load_audio(path, strict=True)
    assert str(one.value) == str(other.value)


def test_nothing_is_no_array(folder):
    for desc in ("atrim=start=100,aformat=sample_fmts=fltp", "aformat=sample_fmts=fltp,atrim=end_sample=0"):
        with pytest.raises(stoker.InvalidArgumentError, match="there are no frames"):
            load_audio(folder / "mp3.mp3", filter_desc=desc)


def test_a_header_that_says_too_much(folder, tmp_path):
    """A WAV file of three seconds that says it has hours, and one that says it has none."""
    data = bytearray((folder / "pcm.wav").read_bytes())
    at = data.index(b"data") + 4
    for size in (0x7FFFFFFF, 0xFFFFFFFF, 0):
        data[at : at + 4] = size.to_bytes(4, "little")
        path = tmp_path / f"{size}.wav"
        path.write_bytes(data)
        np.testing.assert_array_equal(np.asarray(load_audio(path)), converted(path))


def test_more_than_is_believed_at_first(tmp_path):
    """Room is made for 64 MiB, and the rest when that much has come."""
    path = tmp_path / "long.wav"
    data = (np.arange(180 * 48000 * 2) % 65521).astype(np.uint16)
    with wave.open(str(path), "wb") as file:
        file.setparams((2, 2, 48000, 0, "NONE", ""))
        file.writeframes(data.tobytes())
    found = np.asarray(load_audio(path))
    assert found.nbytes > 64 << 20
    np.testing.assert_array_equal(found.T.reshape(-1), data.view(np.int16) / np.float32(32768))
