"""Streams that change in the middle, times and sizes that cannot be, files that are cut: errors or counts, never less
than there is without a word."""

from __future__ import annotations

import os
import struct

import numpy as np
import pytest

import stoker
from stoker import PipelineBuilder, ops, source
from stoker.io import (
    Decoder,
    Demuxer,
    VideoReader,
    convert_frames,
    decode_config,
    decode_packets,
    demux_audio,
    demux_config,
    demux_video,
    load_audio,
    to_numpy,
)
from stoker.io.utils import get_ffmpeg_versions

from av import ffmpeg, make, needs_ffmpeg, tone
from boxes import mp4, put, wrong_sizes

pytestmark = needs_ffmpeg

QUICK = demux_config(timeout=20)
LIMITED = decode_config(max_pixels=1 << 16)
X264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-bsf:v", "filter_units=remove_types=6"]
X265 = ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=0:info=0", "-tag:v", "hvc1"]
SMALL = {
    "h264.mp4": X264,
    "h264_front.mp4": [*X264, "-movflags", "faststart"],
    "h264.mkv": X264,
    "h264.h264": X264,
    "hevc.mp4": X265,
    "hevc.hevc": [*X265[:-2]],
    "mpeg4.avi": ["-c:v", "mpeg4"],
    "anim.gif": [],
    "still.avif": ["-frames:v", "1", "-c:v", "libaom-av1", "-still-picture", "1", "-cpu-used", "8"],
}
SOUNDS = {
    "opus.ogg": ["-c:a", "libopus", "-ar", "48000"],
    "opus.webm": ["-c:a", "libopus", "-ar", "48000"],
    "flac.flac": [],
    "mp3.mp3": ["-id3v2_version", "0"],
    "pcm.wav": [],
    "aac.m4a": ["-c:a", "aac"],
}
# Where a cut, or a size, between packets is not seen by FFmpeg, nor said by the file's header.
ENDLESS = {"h264.h264", "hevc.hevc", "mp3.mp3", "still.avif", "flac.flac"}
RESYNCED = {"h264.mkv", "opus.webm", "pcm.wav"}


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    made: dict[str, bytes] = {}

    def get(name):
        if name not in made and name in SMALL:
            made[name] = make(folder / name, *SMALL[name], size="16x16", rate=5, seconds=0.8).read_bytes()
        elif name not in made:
            made[name] = tone(folder / name, *SOUNDS[name], rate=8000, channels=1, seconds=0.1).read_bytes()
        return made[name]

    return get


def decoded(name, data, strict=False):
    demux = demux_audio if name in SOUNDS else demux_video
    return decode_packets(demux(data, demux_config=QUICK), None, LIMITED, strict=strict)


def error_or_count(name, data, whole):
    """What came of it: an error, a count, or all samples or pictures; else None."""
    try:
        frames = decoded(name, data)
    except stoker.Error as error:
        assert str(error)
        return "error"
    if frames.num_failed:
        return "count"
    return "whole" if len(frames) >= whole else None


@pytest.mark.parametrize("name", [*SMALL, *SOUNDS])
def test_cut_anywhere(small, name):
    data = small(name)
    whole = len(decoded(name, data, strict=True))
    assert whole
    silent = [n for n in range(0, len(data), max(1, len(data) // 120)) if not error_or_count(name, data[:n], whole)]
    assert not silent or name in ENDLESS, (len(data), silent)


@pytest.mark.parametrize("name", ["h264.mp4", "h264_front.mp4", "h264.mkv", "mpeg4.avi", "pcm.wav", "still.avif", "opus.webm", "aac.m4a"])
def test_sizes_in_headers_that_are_wrong(small, name):
    data = small(name)
    whole = len(decoded(name, data, strict=True))
    cases = list(wrong_sizes(name, data))
    some = cases[:: max(1, len(cases) // 120)]
    silent = [what for what, bad in some if not error_or_count(name, bad, whole)]
    assert not silent or name in RESYNCED, (len(data), silent)


@pytest.mark.parametrize("name", ["flac", "w64", "wav", "mp4", "m4a"])
def test_sound_that_is_cut_between_packets(name, tmp_path):
    more = {"wav": ["-rf64", "always"], "mp4": ["-movflags", "faststart"], "m4a": ["-movflags", "faststart"]}.get(name, [])
    path = tmp_path / f"sound.{name}"
    if name == "mp4":
        make(path, *more, seconds=1, audio=True)
    else:
        tone(path, *more, seconds=1)
    data = path.read_bytes()
    whole = len(decode_packets(demux_audio(data), None, strict=True))
    for part in range(6, 12):
        cut = demux_audio(data[: len(data) * part // 12 // 4096 * 4096], demux_config=QUICK)
        with pytest.raises(stoker.CorruptError, match="packet"):
            decode_packets(cut.clone(), None, strict=True)
        try:
            frames = decode_packets(cut, None)
        except stoker.CorruptError:
            continue  # not one packet is whole
        assert frames.num_failed and len(frames) < whole


ENDED = {
    "sound.aiff": [],
    "sound.au": [],
    "sound.ogg": ["-c:a", "libvorbis"],
    "sound.opus": ["-c:a", "libopus", "-ar", "48000"],
    "sound.mka": ["-c:a", "flac"],
    "video.webm": ["-c:v", "libvpx", "-g", "5"],
    "video.mkv": ["-c:v", "mpeg4"],
    "video.flv": ["-c:v", "flv1"],
    "video.ogv": ["-c:v", "libtheora"],
    "anim.gif": [],
    "anim.apng": [],
}
PIPED = {"mka": "matroska", "mkv": "matroska", "ogv": "ogg"}


@pytest.mark.parametrize("name", ENDED)
def test_an_end_that_a_file_tells_of(name, tmp_path):
    """By a size in its header, or a mark behind its last packet: without it, it is not whole."""
    path, suffix = tmp_path / name, name.split(".")[-1]
    if name.startswith("sound"):
        tone(path, *ENDED[name], rate=48000, channels=1, seconds=0.5)
    else:
        make(path, *ENDED[name], size="32x32", rate=10)
    demux = demux_audio if name.startswith("sound") else demux_video
    data = path.read_bytes()
    whole = decode_packets(demux(data), None, strict=True)
    lengths = set()
    for n in range(len(data) // 8, len(data) - 1, max(1, len(data) // 61)):
        try:
            lengths.add(len(decode_packets(demux(data[:n], demux_config=QUICK), None, strict=True)))
        except stoker.Error:
            lengths.add(-1)
    assert -1 in lengths and lengths <= {-1, len(whole)}
    if suffix not in {"apng", "aiff"}:  # what is written into a pipe has no size in its header, which AIFF needs
        piped = ffmpeg("-i", path, "-c", "copy", "-f", PIPED.get(suffix, suffix), "-")
        assert len(decode_packets(demux(piped), None, strict=True)) == len(whole)


def streamed(data, part):
    """Frames of the first stream, and packets that failed."""
    with Demuxer(data, demux_config=QUICK) as demuxer:
        codec = demuxer.video_codec if demuxer.video_stream_index >= 0 else demuxer.audio_codec
        decoder, n = Decoder(codec, filter_desc=None), 0
        for packets in demuxer.streaming_demux(**part):
            n += sum(map(len, decoder.streaming_decode_packets(packets)))
        return n + sum(map(len, decoder.flush())), decoder.num_failed


@pytest.mark.parametrize("part", [{"num_packets": 1}, {"num_packets": 7}, {"duration": 0.1}])
@pytest.mark.parametrize("name", ["flac", "w64", "wav", "mp4", "mkv", "avi", "oga", "aiff"])
def test_what_is_cut_and_streamed(name, part, tmp_path):
    """As what is read at once: the last packet fails, wherever a part ends."""
    path = tmp_path / f"some.{name}"
    pictures = name in {"mp4", "mkv", "avi"}
    if pictures:
        make(path, "-c:v", "mpeg4", *["-movflags", "faststart"] * (name == "mp4"), audio=True)
    else:
        tone(path, seconds=2)
    data = path.read_bytes()
    for size in (len(data), len(data) * 3 // 4, len(data) // 2 // 4096 * 4096):
        packets = (demux_video if pictures else demux_audio)(data[:size], demux_config=QUICK)
        once = decode_packets(packets, None)
        assert streamed(data[:size], part) == (len(once), once.num_failed)
        assert bool(once.num_failed) == (size < len(data))


def test_streams_that_are_cut_together(tmp_path):
    """The last part has packets of one of them, and says so of that."""
    path = make(tmp_path / "some.mp4", "-c:v", "mpeg4", "-movflags", "faststart", audio=True)
    data = path.read_bytes()
    for size in range(len(data) // 2, len(data) // 2 + 3000, 500):
        with Demuxer(data[:size], demux_config=QUICK) as demuxer:
            streams = {demuxer.video_stream_index: demuxer.video_codec, demuxer.audio_stream_index: demuxer.audio_codec}
            decoders = {stream: Decoder(codec, filter_desc=None) for stream, codec in streams.items()}
            for parts in demuxer.streaming_demux(list(streams), num_packets=1):
                for stream, packets in parts.items():
                    list(decoders[stream].streaming_decode_packets(packets))
            for decoder in decoders.values():
                list(decoder.flush())
        assert sum(decoder.num_failed for decoder in decoders.values()) == 1


def test_a_reader_of_what_is_cut(tmp_path):
    """Its index says that there is more, and FFmpeg does not: the last frame fails, and others do not."""
    data = make(tmp_path / "some.mp4", "-c:v", "mpeg4", "-movflags", "faststart").read_bytes()
    whole = to_numpy(convert_frames(decode_packets(demux_video(data))))
    start = data.index(b"mdat") + 4
    cut = data[: start + (len(data) - start) * 2 // 3]
    with VideoReader(cut, strict=True) as reader:
        assert len(reader) == len(demux_video(cut)) < 50
        np.testing.assert_array_equal(reader.get_frames_at([0, 3]), whole[[0, 3]])
        with pytest.raises(stoker.CorruptError, match="ends too early"):
            reader.get_frames_at([len(reader) - 1])


# --- files that are whole ---


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize("says", [0, 0x7FFF_F000, 0x7FFF_FFDB, 0x8000_0000, 0xFFFF_FFFF])
def test_wav_that_does_not_say_its_size_is_whole(says, piped, tmp_path):
    sound = np.arange(20_000, dtype="<i2")
    riff = (b"RIFF", min(says + 36, 0xFFFF_FFFF), b"WAVE")
    head = struct.pack("<4sI4s4sIHHIIHH4sI", *riff, b"fmt ", 16, 1, 1, 8000, 16000, 2, 16, b"data", says)
    path = tmp_path / "whole.wav"
    path.write_bytes(head + sound.tobytes())
    if piped:
        inlet, outlet = os.pipe()
        with open(outlet, "wb") as out:  # a pipe has room for all of it
            out.write(path.read_bytes())
    with open(inlet, "rb") if piped else open(path, "rb") as file:
        frames = decode_packets(demux_audio(file if piped else path, demux_config=QUICK), None, strict=True)
    assert np.array_equal(to_numpy(convert_frames(frames)).ravel(), sound)


def test_a_large_wav_that_is_cut_says_so(tmp_path):
    riff = (b"RIFF", 3_000_000_036, b"WAVE")  # a size like any other, above 2 GiB
    head = struct.pack("<4sI4s4sIHHIIHH4sI", *riff, b"fmt ", 16, 1, 1, 8000, 16000, 2, 16, b"data", 3_000_000_000)
    with pytest.raises(stoker.CorruptError, match="the input ends too early"):
        decode_packets(demux_audio(head + bytes(30_000)), None, strict=True)


@pytest.mark.parametrize("more", [1, 8])
def test_wav_that_counts_its_head_or_padding_is_whole(more, tmp_path):
    data = tone(tmp_path / "tone.wav", seconds=1).read_bytes()
    larger = put(data, 4, len(data) - 8 + more, 4, "little")
    assert len(decode_packets(demux_audio(larger), None, strict=True)) == 44100


def test_mp4_with_empty_samples_is_whole(tmp_path):
    data = make(tmp_path / "some.mp4", "-c:v", "libx264", "-movflags", "faststart", "-pix_fmt", "yuv420p").read_bytes()
    sizes = data.index(b"stsz") + 8
    count = struct.unpack_from(">I", data, sizes + 4)[0]
    last = sizes + 4 * (count + 1)  # its bytes stay, behind the others
    frames = decode_packets(demux_video(put(data, last, 0, 4)), None, strict=True)
    assert len(frames) in {count - 1, count}


def test_avi_with_frames_that_were_left_out_is_whole(tmp_path):
    path = make(tmp_path / "some.avi", "-vf", "select='not(eq(mod(n,5),3))'", "-vsync", "vfr", "-c:v", "mpeg4")
    assert len(decode_packets(demux_video(path), None, strict=True)) == 40


def test_mp3_may_count_the_frame_that_holds_the_number(tmp_path):
    data = tone(tmp_path / "tone.mp3", "-id3v2_version", "0", seconds=1).read_bytes()
    at = data.index(b"Xing" if b"Xing" in data else b"Info") + 8
    count = struct.unpack_from(">I", data, at)[0]
    assert len(decode_packets(demux_audio(put(data, at, count + 1, 4)), None, strict=True)) >= 44100
    with pytest.raises(stoker.CorruptError, match="the input ends too early"):
        # From FFmpeg 8 on its number is without what encoders put around sound, which is two frames.
        more = 3 if get_ffmpeg_versions()["libavformat"][0] < 62 else 5
        decode_packets(demux_audio(put(data, at, count + more, 4)), None, strict=True)


# --- sound that changes ---


@pytest.fixture(scope="module", params=["aac", "mp3", "ts"])
def changing(request, tmp_path_factory):
    """A second of 44100 Hz stereo, and then one of 22050 Hz mono."""
    folder = tmp_path_factory.mktemp("changing")
    codec = {"aac": ["-c:a", "aac"], "mp3": ["-id3v2_version", "0", "-write_xing", "0"], "ts": ["-c:a", "mp2"]}[request.param]
    parts = [
        tone(folder / f"{rate}.{request.param}", *codec, rate=rate, channels=channels, seconds=1)
        for rate, channels in ((44100, 2), (22050, 1))
    ]
    path = folder / f"both.{request.param}"
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    return path


ALIKE = "aresample=16000:rematrix_maxval=1,aformat=sample_fmts=fltp:channel_layouts=mono"


def test_a_rate_that_changes_is_no_array(changing):
    with Demuxer(changing) as demuxer:
        decoder = Decoder(demuxer.audio_codec, filter_desc=None)
        parts = [frames for packets in demuxer.streaming_demux(num_packets=1) for frames in decoder.streaming_decode_packets(packets)]
    assert {(frames.sample_rate, frames.num_channels) for frames in parts} >= {(44100, 2), (22050, 1)}
    frames = decode_packets(demux_audio(changing), None)
    with pytest.raises(stoker.InvalidArgumentError, match="differ in"):
        convert_frames(frames)
    with pytest.raises(stoker.InvalidArgumentError, match="differ in"):
        load_audio(changing)
    with pytest.raises(stoker.InvalidArgumentError, match="differ in sample rate"):
        load_audio(changing, filter_desc="aformat=sample_fmts=fltp:channel_layouts=mono")


def test_filters_make_it_alike(changing):
    whole = np.asarray(load_audio(changing, filter_desc=ALIKE))
    assert whole.shape[0] == 1 and abs(whole.shape[1] - 32000) < 3000
    assert np.abs(whole[0, 2000:12000]).max() > 0.1 and np.abs(whole[0, 20000:30000]).max() > 0.1


def test_clips_of_it_have_their_length(changing):
    whole = np.asarray(load_audio(changing, filter_desc=ALIKE))

    def clips(seconds, **options):
        op = ops.decode_audio(seconds, sample_rate=16000, channels=1, **options)
        pipeline = PipelineBuilder().add_source(source.List(audio=[changing] * 3, files=["audio"])).pipe(ops.read()).pipe(op).batch(3).add_sink(1)
        (batch,) = pipeline.build(num_threads=1)
        return np.asarray(batch["audio"]), np.asarray(batch["mask"])

    got, mask = clips(1.3)
    assert got.shape == (3, 1, 20800) and mask.all()
    assert np.abs(got[0] - whole[:, :20800]).max() < 0.05
    got, mask = clips(1.3, where="random")
    assert got.shape == (3, 1, 20800)
    got, mask = clips(3, where="all")
    assert mask.sum(1).tolist() == [whole.shape[1]] * 3 and not got[:, :, whole.shape[1] :].any()


# --- times ---


@pytest.fixture(scope="module")
def timed(tmp_path_factory):
    """Eight pictures with times by an expression of setts."""
    folder = tmp_path_factory.mktemp("timed")
    path = make(folder / "plain.nut", "-c:v", "mpeg4", size="16x16", rate=5, seconds=1.6)

    def get(times, suffix="nut"):
        out = folder / f"{abs(hash(times))}.{suffix}"
        ffmpeg("-i", path, "-c", "copy", "-copyts", "-avoid_negative_ts", "disabled", "-bsf:v", f"setts=ts='{times}'", "-f", {"nut": "nut", "mkv": "matroska"}[suffix], out)
        return out

    return get


FAR = {
    "far": "PTS+4e18*gte(N,5)",
    "farther": "PTS+4e18*gte(N,3)+4e18*gte(N,6)",
    "all far": "PTS+8e18",
}


@pytest.mark.parametrize("times", FAR)
def test_times_that_are_enormous(timed, times):
    path = timed(FAR[times])
    frames = decode_packets(demux_video(path), None)
    assert len(frames) == 8 and frames.get_timestamps()[-1] > 1e13
    assert len(decode_packets(demux_video(path))) == 8
    assert convert_frames(decode_packets(demux_video(path))).shape == (8, 16, 16, 3)
    for window in (0, 1), (0, 2**62), (-(2**62), 2**62):
        try:
            assert len(demux_video(path, timestamp=window)) <= 8
        except stoker.Error as error:
            assert str(error)


def test_gaps_are_not_filled_for_ever(timed):
    with pytest.raises(stoker.LimitError, match="far from that of the next, or they never stop"):
        decode_packets(demux_video(timed(FAR["far"])), "fps=25")


@pytest.mark.parametrize("times", [*FAR, "same"])
def test_clips_with_such_times(timed, times):
    path = timed(FAR.get(times, "0"))
    op = ops.decode_video(4, where="middle")
    pipeline = PipelineBuilder().add_source(source.List([path])).pipe(ops.read()).pipe(op, on_error="skip").batch(1).add_sink(1).build(num_threads=1)
    batches = list(pipeline)
    assert sum(len(batch) for batch in batches) + len(pipeline.failures()) == 1
    for batch in batches:
        assert batch.image.shape == (1, 4, 16, 16, 3)
    try:
        reader = VideoReader(path)
        assert reader.get_frames_at([0, 3]).shape == (2, 16, 16, 3)
    except stoker.Error as error:
        assert str(error)


def test_durations_that_are_zero_or_enormous(small):
    """In the headers of MP4: mvhd, tkhd and mdhd (ISO 14496-12, 8.2.2, 8.3.2, 8.4.2), elst and stts."""
    data = small("h264.mp4")
    found = {kind: at for kind, at, _ in mp4(data)}
    places = [(found[b"mvhd"] + 24, 4), (found[b"tkhd"] + 28, 4), (found[b"mdhd"] + 24, 4), (found[b"stts"] + 20, 4)]
    if b"elst" in found:
        places += [(found[b"elst"] + 16, 4), (found[b"elst"] + 20, 4)]
    for at, width in places:
        for value in 0, 1, 2**31 - 1, 2**31, 2**32 - 1:
            bad = put(data, at, value, width)
            try:
                with Demuxer(bad, demux_config=QUICK) as demuxer:
                    frames = decode_packets(demuxer.demux_video(), None)
                    assert len(frames) == 4 or frames.num_failed or at > found[b"stts"] or b"elst" in found, (at, value)
                    assert len(demuxer.demux_video((0, 1e9))) <= 4
            except stoker.Error as error:
                assert str(error)


def test_durations_of_64_bits(small):
    """The same headers in version 1, which has 64 bits for times."""
    data = small("h264.mp4")
    (at, size), moov = next((at, size) for kind, at, size in mp4(data) if kind == b"mdhd"), None
    head = data[at : at + size]
    for duration in 0, 2**62, 2**63 - 1, 2**64 - 1:
        new = struct.pack(">I4sB3xQQIQ", size + 12, b"mdhd", 1, 0, 0, *struct.unpack(">I", head[20:24]), duration) + head[28:]
        bad = data[:at] + new + data[at + size :]
        for kind, where, old in mp4(data):
            if kind in (b"moov", b"trak", b"mdia") and where < at < where + old:
                bad = put(bad, where, old + 12, 4)
                moov = moov or where
        assert moov is not None and moov > data.index(b"mdat")  # offsets into it stay
        with Demuxer(bad, demux_config=QUICK) as demuxer:
            assert len(decode_packets(demuxer.demux_video(), None, strict=True)) == 4
            assert len(demuxer.demux_video((0, 1e9))) == 4
